// A file with companions is there with all of them or not at all.
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>

#include <doctest/doctest.h>

#include "base/error.hpp"
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

TEST_CASE("where only the name is not synced, the message says that the new file is in place") {
  const TempFolder folder;
  int renames = 0;
  const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
    renames += call == os::Call::kRename ? 1 : 0;
    const bool fails = renames == 2 && call == os::Call::kSync;
    return fails ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
  });
  CHECK(contains(message_of([&] { write_group(folder / "b", "new"); }),
                 "b: the new file is in place, writing its folder to disk: Input/output error"));
  CHECK(folder.names() == Names{"a", "b"});
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

/// What stands in the folder, as "name=content ", temporaries left out.
std::string contents(const TempFolder& folder) {
  std::string out;
  for (const std::string& name : folder.names()) {
    if (!name.ends_with(".masque-tmp")) out += name + "=" + read_file(folder / name) + " ";
  }
  return out;
}

constexpr const char* kOld = "a=old b=old ";
constexpr const char* kNew = "a=new b=new c=new ";

/// A file "b" with one companion, where replace() makes one with two.
void write_old(const TempFolder& folder) {
  for (const std::string& name : folder.names()) std::filesystem::remove_all(folder / name);
  write_file(folder / "a", "old");
  write_file(folder / "b", "old");
}

void replace(const TempFolder& folder) {
  OutputGroup group(folder / "b", Existing::kReplace);
  for (const char* name : {"b", "a", "c"}) write_at(group.create(name), 0, as_bytes("new"), name);
  group.commit();
}

/// Calls `act` at the n-th system call of replace().
std::string replace_with(const TempFolder& folder, int n,
                         const std::function<std::optional<os::Fault>(os::Call)>& act, int& calls) {
  calls = 0;
  const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
    return ++calls == n ? act(call) : std::nullopt;
  });
  return message_of([&] { replace(folder); });
}

TEST_CASE("a file with companions replaces another one") {
  const TempFolder folder;
  write_old(folder);
  std::filesystem::permissions(folder / "a", std::filesystem::perms::owner_read);
  replace(folder);
  CHECK(contents(folder) == kNew);
  CHECK(folder.names() == Names{"a", "b", "c"});
  CHECK(std::filesystem::status(folder / "a").permissions() == std::filesystem::perms::owner_read);
}

TEST_CASE("whatever call fails while a file with companions is replaced, it is old or new") {
  const TempFolder folder;
  int calls = 0;
  int n = 1;
  for (bool ended = false; !ended; ++n) {
    CAPTURE(n);
    write_old(folder);
    os::Call failed = os::Call::kStat;
    const std::string message = replace_with(
        folder, n,
        [&](os::Call call) {
          failed = call;
          return os::Fault{.error = EIO};
        },
        calls);
    ended = calls < n;
    const std::string found = contents(folder);
    const bool thrown = message != "(nothing thrown)";
    CHECK((found == kNew || (thrown && found == kOld)));
    if (thrown) CHECK(contains(message, "Input/output error"));
    // What could not be removed, or is kept, goes with the next one.
    if (failed != os::Call::kUnlink && failed != os::Call::kRmdir && failed != os::Call::kSync &&
        found == kOld)
      CHECK(folder.names() == Names{"a", "b"});
    replace(folder);
    CHECK(folder.names() == Names{"a", "b", "c"});
  }
  CHECK(n > 40);
}

TEST_CASE(
    "a replacement that is killed leaves no file with other companions, and the next one puts it "
    "back") {
  const TempFolder folder;
  int calls = 0;
  int gone = 0;
  for (int n = 1;; ++n) {
    CAPTURE(n);
    write_old(folder);
    test::Child child([&](const std::function<void()>&) {
      const auto die = [](os::Call) {
        ::raise(SIGKILL);
        return std::optional<os::Fault>();
      };
      replace_with(folder, n, die, calls);
      return 0;
    });
    if (child.wait() == 0) break;
    const std::string found = contents(folder);
    if (std::filesystem::exists(folder / "b")) {
      CHECK((found == kOld || found == kNew));
    } else {
      ++gone;
    }
    { const OutputGroup next(folder / "b", Existing::kReplace); }
    CHECK(contents(folder) == (found == kNew ? kNew : kOld));
    CHECK_FALSE(std::filesystem::exists(folder / ".b.masque-tmp"));
  }
  CHECK(gone > 5);
}

}  // namespace
}  // namespace masque
