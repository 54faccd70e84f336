// A file with companions is there with all of them or not at all.
#include "base/output_group.hpp"

#include <filesystem>
#include <optional>

#include <doctest/doctest.h>

#include "base/error.hpp"
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

/// Writes the companion "a" and the file "b", as far as it gets.
void write_group(const std::string& path, const std::string& content) {
  OutputGroup group(path);
  for (const char* name : {"b", "a"}) write_at(group.create(name), 0, as_bytes(content), name);
  CHECK(read_file(group.staging_path() + "/a") == content);
  group.commit();
}

TEST_CASE("both files get their names, the file itself last") {
  const TempFolder folder;
  Names renamed;
  {
    const test::Faults watch([&](os::Call call, std::string_view path, std::size_t) {
      if (call == os::Call::kRename) renamed.emplace_back(base_name(path));
      return std::optional<os::Fault>();
    });
    write_group(folder / "b", "new");
  }
  CHECK(renamed == Names{"a", "b"});
  CHECK(folder.names() == Names{"a", "b"});
  CHECK(read_file(folder / "a") == "new");
  CHECK(read_file(folder / "b") == "new");
}

TEST_CASE("a file that is there stays, a companion without one does not") {
  const TempFolder folder;
  write_file(folder / "a", "old");
  write_group(folder / "b", "new");
  CHECK(read_file(folder / "a") == "new");
  CHECK(contains(message_of([&] { write_group(folder / "b", "newer"); }), "b: exists"));
  CHECK(read_file(folder / "a") == "new");
  std::filesystem::remove(folder / "b");
  std::filesystem::remove(folder / "a");
  std::filesystem::create_symlink("elsewhere", folder / "a");
  CHECK(contains(message_of([&] { write_group(folder / "b", "new"); }), "is a symbolic link"));
  CHECK(folder.names() == Names{"a"});
}

TEST_CASE("a file that somebody else made meanwhile stays, and nothing of ours") {
  const TempFolder folder;
  OutputGroup group(folder / "b");
  write_at(group.create("b"), 0, as_bytes("ours"), "b");
  write_at(group.create("a"), 0, as_bytes("ours"), "a");
  CHECK(contains(message_of([&] { write_group(folder / "b", "second"); }),
                 "is being written by another process"));
  write_file(folder / "b", "theirs");
  CHECK(contains(message_of([&] { group.commit(); }), "b: exists"));
  CHECK(read_file(folder / "b") == "theirs");
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
}

TEST_CASE("a group that is not committed leaves nothing") {
  const TempFolder folder;
  {
    OutputGroup group(folder / "b");
    group.create("a");
    CHECK(folder.names().size() == 1);
  }
  CHECK(folder.names().empty());
}

TEST_CASE("a companion that a loss of power left with two names is written anew") {
  const TempFolder folder;
  write_file(folder / "a", "old");
  const std::string staging = folder / ".b.masque-tmp";
  std::filesystem::create_directory(staging);
  std::filesystem::create_hard_link(folder / "a", staging + "/a");
  write_group(folder / "b", "new");
  CHECK(folder.names() == Names{"a", "b"});
  CHECK(read_file(folder / "a") == "new");
}

}  // namespace
}  // namespace masque
