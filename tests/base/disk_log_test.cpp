// The log that the tests of power losses take their states from.
#include "support/disk_log.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include <doctest/doctest.h>

#include "support/temp_folder.hpp"

namespace masque::test {
namespace {

using Kind = DiskChange::Kind;

/// Every state after `count` events, as "path=content path=content ".
std::set<std::string> states(const DiskLog& log, std::size_t count) {
  std::set<std::string> out;
  log.crashes(count, 100, 1, [&](const DiskState& state) {
    std::string text;
    for (const auto& [path, content] : state) text += path + "=" + content + " ";
    out.insert(text);
  });
  return out;
}

/// A folder "a" with a file "f" that holds "1", and a folder "b".
DiskLog two_folders() {
  DiskLog log;
  log.add({.kind = Kind::kMakeFolder, .file = 1, .name = "a"});
  log.add({.kind = Kind::kMakeFolder, .file = 2, .name = "b"});
  log.add({.kind = Kind::kCreate, .file = 3, .folder = 1, .name = "f"});
  log.add({.kind = Kind::kBytes, .file = 3, .bytes = "1"});
  log.add({.kind = Kind::kAllOnDisk});
  return log;
}

TEST_CASE("a disk keeps bytes by a file's sync and names by its folder's") {
  DiskLog log;
  log.add({.kind = Kind::kCreate, .file = 1, .name = "f"});
  log.add({.kind = Kind::kBytes, .file = 1, .bytes = "x"});
  CHECK(states(log, 0) == std::set<std::string>{""});
  CHECK(states(log, 2) == std::set<std::string>{"", "f= ", "f=x ", std::string("f=\0 ", 4)});
  log.add({.kind = Kind::kSyncFile, .file = 1});
  CHECK(states(log, 3) == std::set<std::string>{"", "f=x "});
  log.add({.kind = Kind::kSyncFolder, .file = 0});
  CHECK(states(log, 4) == std::set<std::string>{"f=x "});
}

TEST_CASE("what moves to another folder is in the old one, in both or in the new one") {
  DiskLog log = two_folders();
  log.add({.kind = Kind::kRename, .file = 3, .folder = 1, .name = "f", .to_folder = 2, .to = "g"});
  const std::string old = "a/= a/f=1 b/= ";
  const std::string both = "a/= a/f=1 b/= b/g=1 ";
  const std::string now = "a/= b/= b/g=1 ";
  CHECK(states(log, 1) == std::set<std::string>{old, both, now});
  DiskLog left = log;
  left.add({.kind = Kind::kSyncFolder, .file = 1});
  CHECK(states(left, 2) == std::set<std::string>{now});
  log.add({.kind = Kind::kSyncFolder, .file = 2});
  CHECK(states(log, 2) == std::set<std::string>{both, now});
}

TEST_CASE("names change places at once, and what is removed after that may be gone alone") {
  DiskLog log = two_folders();
  CHECK(log.events_before("f") == 0);
  log.add({.kind = Kind::kExchange, .file = 1, .folder = 0, .name = "a", .to = "b"});
  const std::string old = "a/= a/f=1 b/= ";
  const std::string now = "a/= b/= b/f=1 ";
  CHECK(states(log, 1) == std::set<std::string>{old, now});
  log.add({.kind = Kind::kUnlink, .folder = 1, .name = "f"});
  CHECK(states(log, 2) == std::set<std::string>{old, now, "a/= b/= "});
}

TEST_CASE("a log of changes is read as it was written") {
  const TempFolder folder;
  const std::string path = folder / "log";
  {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                               std::fclose);
    write_change(file.get(), {.kind = Kind::kCreate, .file = 1, .name = "f"});
    write_change(file.get(), {.kind = Kind::kAllOnDisk});
    write_change(file.get(), {.kind = Kind::kBytes, .file = 1, .offset = 2, .bytes = "xy"});
    write_change(file.get(), {.kind = Kind::kSyncFile, .file = 1});
    write_change(file.get(), {.kind = Kind::kRename, .file = 1, .name = "f", .to = "g"});
  }
  const DiskLog log = read_disk_log(path);
  CHECK(log.events() == 3);
  CHECK(log.events_before("none") == 3);
  CHECK(states(log, 3) ==
        std::set<std::string>{std::string("f=\0\0xy ", 7), std::string("g=\0\0xy ", 7)});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(log.crash(0, seed) == DiskState{{"f", ""}});
    CHECK(log.crash(2, seed) == DiskState{{"f", std::string("\0\0xy", 4)}});
  }
}

}  // namespace
}  // namespace masque::test
