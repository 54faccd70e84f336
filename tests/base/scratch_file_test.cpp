// What a run gathers lies in a file without a name.
#include "base/file/scratch_file.hpp"

#include <cerrno>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

using test::contains;
using test::message_of;
using test::TempFolder;
using Names = std::vector<std::string>;

std::string content(const ScratchFile& file) {
  std::string text(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST_CASE("a scratch file grows, and nobody sees it") {
  const TempFolder folder;
  ScratchFile file(folder / "new");
  CHECK(folder.names().empty());
  CHECK(content(file).empty());
  file.append("one\n");
  file.append("two\n");
  CHECK(file.size() == 8);
  CHECK(content(file) == "one\ntwo\n");
  // Another output of the same name has one of its own.
  ScratchFile other(folder / "new");
  other.append("three\n");
  CHECK(content(file) == "one\ntwo\n");
  CHECK(content(other) == "three\n");
  CHECK(folder.names().empty());
}

TEST_CASE("what a killed run left of a scratch file is taken over and empty") {
  const TempFolder folder;
  test::write_file(folder / ".new.scratch.masque-tmp", "left");
  ScratchFile file(folder / "new");
  CHECK(folder.names().empty());
  file.append("x");
  CHECK(content(file) == "x");
}

TEST_CASE("an append that fails leaves what was there before") {
  const TempFolder folder;
  ScratchFile file(folder / "new");
  file.append("one\n");
  int writes = 0;
  {
    const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
      if (call != os::Call::kPwrite) return std::optional<os::Fault>();
      return std::optional(++writes == 1 ? os::Fault{.count = 2} : os::Fault{.error = ENOSPC});
    });
    CHECK(contains(message_of([&] { file.append("lost\n"); }), "new: writing: No space left"));
  }
  CHECK(writes == 2);
  CHECK(content(file) == "one\n");
  file.append("two\n");
  CHECK(content(file) == "one\ntwo\n");
}

TEST_CASE("a scratch file needs a folder that can be written") {
  const TempFolder folder;
  CHECK(contains(message_of([&] { ScratchFile(folder / "none/new"); }), "no such folder"));
  const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
    return call == os::Call::kUnlink ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
  });
  CHECK(contains(message_of([&] { ScratchFile(folder / "new"); }), "new: writing: Input/output"));
}

}  // namespace
}  // namespace masque
