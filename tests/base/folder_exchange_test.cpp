// Folders are replaced where no system call exchanges two names, as on NFS.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file/output_folder.hpp"
#include "support/child.hpp"
#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

using test::contains;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;
using Names = std::vector<std::string>;

void put_weights(OutputFolder& output, std::string_view text) {
  write_all(output.create("model.safetensors", 0644).get(), as_bytes(text), "weights");
}

TEST_CASE("where two folders cannot be exchanged, the old one goes aside first") {
  const TempFolder folder;
  write_file(folder / "old/model.safetensors", "old");
  write_file(folder / ".old.old.masque-tmp/model.safetensors", "of a killed run");
  const auto replace = [&](int also) {
    OutputFolder output(folder / "old", Existing::kReplace);
    put_weights(output, "new");
    int renames = 0;
    // As NFS answers an exchange; then another rename fails, too.
    const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
      if (call != os::Call::kRename) return std::optional<os::Fault>();
      ++renames;
      if (renames == 1) return std::optional(os::Fault{.error = EINVAL});
      return renames == also ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
    });
    return message_of([&] { output.commit(); });
  };
  for (const int failing : {2, 3}) {
    CHECK(contains(replace(failing), "old: renaming into place: Input/output error"));
    CHECK(read_file(folder / "old/model.safetensors") == "old");
    CHECK(folder.names() == Names{"old"});
  }
  CHECK(replace(0) == "(nothing thrown)");
  CHECK(read_file(folder / "old/model.safetensors") == "new");
  CHECK(folder.names() == Names{"old"});
}

TEST_CASE("a folder that lost its name between the two steps gets it back") {
  const TempFolder folder;
  write_file(folder / "old/model.safetensors", "old");
  test::Child child([&](const std::function<void()>& ready) {
    OutputFolder output(folder / "old", Existing::kReplace);
    put_weights(output, "new");
    int renames = 0;
    const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
      if (call != os::Call::kRename) return std::optional<os::Fault>();
      ++renames;
      if (renames == 1) return std::optional(os::Fault{.error = EINVAL});
      if (renames == 3) {
        ready();
        ::pause();
      }
      return std::optional<os::Fault>();
    });
    output.commit();
    return 0;
  });
  child.kill(SIGKILL);
  child.wait();
  CHECK(folder.names() == Names{".old.masque-tmp", ".old.old.masque-tmp"});
  SUBCASE("of a program that asks") {
    restore_folder(folder / "old");
    CHECK(read_file(folder / "old/model.safetensors") == "old");
    restore_folder(folder / "old");
    CHECK(folder.names() == Names{".old.masque-tmp", "old"});
  }
  SUBCASE("of the next writer") {
    OutputFolder output(folder / "old", Existing::kReplace);
    put_weights(output, "later");
    output.commit();
    CHECK(read_file(folder / "old/model.safetensors") == "later");
    CHECK(folder.names() == Names{"old"});
  }
}

}  // namespace
}  // namespace masque
