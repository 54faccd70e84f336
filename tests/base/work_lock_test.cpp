// One process at a time works on an output.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/file/output_file.hpp"
#include "support/child.hpp"
#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

using test::message_of;
using test::TempFolder;
using Names = std::vector<std::string>;

TEST_CASE("a second one is refused as long as the first is there") {
  const TempFolder folder;
  {
    const WorkLock first(folder / "run");
    CHECK(folder.names() == Names{".run.lock.masque-tmp"});
    CHECK(message_of([&] { WorkLock(folder / "run"); }) ==
          folder / "run" + ": is being written by another process");
    const WorkLock other(folder / "run2");
  }
  CHECK(folder.names().empty());
  const WorkLock again(folder / "run");
}

TEST_CASE("the lock of a killed process is taken over") {
  const TempFolder folder;
  test::Child child([&](const std::function<void()>& ready) {
    const WorkLock lock(folder / "run");
    ready();
    ::pause();
    return 0;
  });
  CHECK(message_of([&] { WorkLock(folder / "run"); }) ==
        folder / "run" + ": is being written by another process");
  child.kill(SIGKILL);
  child.wait();
  CHECK(folder.names() == Names{".run.lock.masque-tmp"});
  { const WorkLock lock(folder / "run"); }
  CHECK(folder.names().empty());
}

TEST_CASE("a file system without locks does not stop the work, but a missing folder does") {
  const TempFolder folder;
  for (const int error : {ENOLCK, EOPNOTSUPP, ENOSYS}) {
    const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
      return call == os::Call::kLock ? std::optional(os::Fault{.error = error}) : std::nullopt;
    });
    const WorkLock first(folder / "run");
    const WorkLock second(folder / "run");
  }
  CHECK(folder.names().empty());
  CHECK(test::contains(message_of([&] { WorkLock(folder / "none/run"); }),
                       "no such folder, expected one that exists"));
}

}  // namespace
}  // namespace masque
