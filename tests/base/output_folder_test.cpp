// A written folder is there complete or not at all, and replaces only what it may.
#include "base/file/output_folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <functional>
#include <optional>

#include <doctest/doctest.h>

#include "support/child.hpp"
#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

using test::contains;
using test::message_of;
using test::names_in;
using test::read_file;
using test::TempFolder;
using test::write_file;
using Names = std::vector<std::string>;

void put(OutputFolder& output, const std::string& name, std::string_view text,
         unsigned mode = 0644) {
  write_all(output.create(name, mode).get(), as_bytes(text), name);
}

mode_t mode_bits(const std::string& path) {
  struct stat info = {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

/// A folder as a checkpoint is saved.
void make_checkpoint(const std::string& path) {
  write_file(path + "/config.json", "{}");
  write_file(path + "/sub/notes", "old notes");
  write_file(path + "/model-00001-of-00002.safetensors", "old");
  write_file(path + "/sub/b.safetensors", "old");
  write_file(path + "/model.safetensors.index.json", "old");
}

TEST_CASE("a new folder appears complete when it is committed") {
  const TempFolder folder;
  {
    OutputFolder output(folder / "new", Existing::kRefuse);
    put(output, "a", "A");
    put(output, "sub/b", "B");
    put(output, "sub/c", "C");
    put(output, "sub/deep/d", "D");
    CHECK_FALSE(exists(folder / "new"));
    CHECK(read_file(output.staging_path() + "/sub/b") == "B");
    output.commit();
  }
  CHECK(folder.names() == Names{"new"});
  CHECK(list_files(folder / "new") == Names{"a", "sub/b", "sub/c", "sub/deep/d"});
  CHECK(read_file(folder / "new/sub/deep/d") == "D");
}

TEST_CASE("without a commit nothing is left") {
  const TempFolder folder;
  make_checkpoint(folder / "old");
  {
    OutputFolder output(folder / "new", Existing::kRefuse);
    put(output, "sub/deep/x", "x");
    OutputFolder other(folder / "old", Existing::kReplace);
    put(other, "config.json", "[]");
  }
  CHECK(folder.names() == Names{"old"});
  CHECK(read_file(folder / "old/config.json") == "{}");
}

TEST_CASE("modes are those requested and a folder's is as usual") {
  const TempFolder folder;
  const mode_t before = ::umask(027);
  OutputFolder output(folder / "new", Existing::kRefuse);
  CHECK(mode_bits(output.staging_path()) == 0700);
  put(output, "plain", "", 0644);
  put(output, "run", "", 0755);
  put(output, "locked", "", 0400);
  output.commit();
  ::umask(before);
  CHECK(mode_bits(folder / "new") == 0750);
  CHECK(mode_bits(folder / "new/plain") == 0640);
  CHECK(mode_bits(folder / "new/run") == 0750);
  CHECK(mode_bits(folder / "new/locked") == 0600);  // its owner can write what it made
}

TEST_CASE("an empty folder is filled") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "empty");
  OutputFolder output(folder / "empty", Existing::kRefuse);
  put(output, "a", "A");
  output.commit();
  CHECK(names_in(folder / "empty") == Names{"a"});
  CHECK(folder.names() == Names{"empty"});
}

TEST_CASE("a folder that holds something is refused unless it may be replaced") {
  const TempFolder folder;
  make_checkpoint(folder / "old");
  CHECK(contains(message_of([&] { OutputFolder(folder / "old", Existing::kRefuse); }),
                 "exists and is not empty, expected a new folder (force replaces it)"));
  OutputFolder output(folder / "old", Existing::kReplace);
  put(output, "model.safetensors", "new");
  put(output, "sub/notes", "new notes");
  put(output, "config.json", "[]");
  output.commit();
  CHECK(list_files(folder / "old") == Names{"config.json", "model.safetensors", "sub/notes"});
  CHECK(read_file(folder / "old/sub/notes") == "new notes");
  CHECK(folder.names() == Names{"old"});
}

TEST_CASE("the old files go away only once the new folder is on the disk") {
  const TempFolder folder;
  write_file(folder / "old/model.safetensors", "old");
  OutputFolder output(folder / "old", Existing::kReplace);
  put(output, "model.safetensors", "new");
  std::vector<os::Call> calls;
  {
    const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
      calls.push_back(call);
      return std::nullopt;
    });
    output.commit();
  }
  // A disk may keep a removal and lose the change of names before it.
  const auto renamed = std::ranges::find(calls, os::Call::kRename);
  const auto removed = std::find(renamed, calls.end(), os::Call::kUnlink);
  REQUIRE(removed != calls.end());
  CHECK(std::find(renamed, removed, os::Call::kSync) != removed);
}

TEST_CASE("if the exchange does not come to the disk the old folder stays") {
  const TempFolder folder;
  write_file(folder / "old/model.safetensors", "old");
  const auto replace = [&](int failing_sync) {
    OutputFolder output(folder / "old", Existing::kReplace);
    put(output, "model.safetensors", "new");
    int syncs = 0;
    const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
      const bool fails = call == os::Call::kSync && ++syncs == failing_sync;
      return fails ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
    });
    return message_of([&] { output.commit(); });
  };
  // The file's, the new folder's, its parent's.
  CHECK(contains(replace(3), "old: the old folder is kept as " + (folder / ".old.masque-tmp") +
                                 ", writing both names to disk: Input/output error"));
  CHECK(folder.names() == Names{".old.masque-tmp", "old"});
  CHECK(read_file(folder / "old/model.safetensors") == "new");
  CHECK(read_file(folder / ".old.masque-tmp/model.safetensors") == "old");
  CHECK(replace(0) == "(nothing thrown)");
  CHECK(folder.names() == Names{"old"});
}

TEST_CASE("where only the name is not synced, the message says that the new folder is in place") {
  const TempFolder folder;
  {
    OutputFolder output(folder / "new", Existing::kRefuse);
    put(output, "model.safetensors", "new");
    bool renamed = false;
    const test::Faults faults([&](os::Call call, std::string_view, std::size_t) {
      renamed = renamed || call == os::Call::kRename;
      const bool fails = renamed && call == os::Call::kSync;
      return fails ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
    });
    CHECK(
        contains(message_of([&] { output.commit(); }),
                 "new: the new folder is in place, writing its name to disk: Input/output error"));
  }
  CHECK(read_file(folder / "new/model.safetensors") == "new");
}

TEST_CASE("a folder with files that the new one lacks is not replaced") {
  const TempFolder folder;
  make_checkpoint(folder / "old");
  write_file(folder / "old/sub/letter\x1b.txt", "dear");
  const Names before = list_files(folder / "old");
  {
    OutputFolder output(folder / "old", Existing::kReplace);
    put(output, "config.json", "[]");
    put(output, "sub/notes", "");
    CHECK(contains(message_of([&] { output.commit(); }),
                   "contains 'sub/letter\\x1b.txt', which would be lost: not replaced"));
  }
  CHECK(list_files(folder / "old") == before);
  CHECK(read_file(folder / "old/config.json") == "{}");
  CHECK(folder.names() == Names{"old"});
}

TEST_CASE("a folder with symbolic links is not replaced") {
  const TempFolder folder;
  const auto message_with_link_to = [&](const std::string& target) {
    std::filesystem::remove_all(folder / "old");
    write_file(folder / "old/config.json", "{}");
    std::filesystem::create_symlink(target, folder / "old/model.safetensors");
    OutputFolder output(folder / "old", Existing::kReplace);
    put(output, "config.json", "[]");
    put(output, "model.safetensors", "new");
    return message_of([&] { output.commit(); });
  };
  write_file(folder / "blob", "weights");
  for (const char* target : {"../blob", "nowhere", ".."}) {
    CAPTURE(target);
    CHECK(contains(message_with_link_to(target), "contains the link 'model.safetensors'"));
    CHECK(read_file(folder / "old/config.json") == "{}");
  }
  CHECK(folder.names() == Names{"blob", "old"});
}

TEST_CASE("a folder that is or holds the input is not replaced") {
  const TempFolder folder;
  make_checkpoint(folder / "old");
  write_file(folder / "older/config.json", "{}");
  std::filesystem::create_directory_symlink("old", folder / "link");
  const auto message_for = [&](const std::string& input) {
    return message_of([&] { OutputFolder(folder / "old", Existing::kReplace, input); });
  };
  for (const char* input : {"old", "old/", "old/config.json", "old/sub/../sub", "link", "./old"}) {
    CAPTURE(input);
    CHECK(contains(message_for(folder / input), "is or contains the input: not replaced"));
  }
  CHECK(message_for(folder / "older") == "(nothing thrown)");
  CHECK(message_for("") == "(nothing thrown)");
}

TEST_CASE("what is no folder is not replaced by one") {
  const TempFolder folder;
  write_file(folder / "file", "x");
  std::filesystem::create_directory_symlink(".", folder / "link");
  for (const Existing existing : {Existing::kRefuse, Existing::kReplace}) {
    CHECK(contains(message_of([&] { OutputFolder(folder / "file", existing); }),
                   "exists, expected a new folder"));
    CHECK(contains(message_of([&] { OutputFolder(folder / "link", existing); }),
                   "exists, expected a new folder"));
  }
  CHECK(contains(message_of([&] { OutputFolder(folder / "none/new", Existing::kRefuse); }),
                 "no such folder"));
}

TEST_CASE("a path without a name for the folder is refused") {
  const TempFolder folder;
  for (const std::string& path : {std::string(), std::string("/"), std::string("."),
                                  std::string(".."), folder / ".", folder / ".."}) {
    CAPTURE(path);
    CHECK(contains(message_of([&] { OutputFolder(path, Existing::kReplace); }),
                   "is not a name for a new folder"));
  }
}

TEST_CASE("a second writer of the same folder is refused and the first goes on") {
  const TempFolder folder;
  OutputFolder first(folder / "new", Existing::kRefuse);
  put(first, "a", "A");
  CHECK(contains(message_of([&] { OutputFolder(folder / "new", Existing::kRefuse); }),
                 "is being written by another process"));
  put(first, "b", "B");
  first.commit();
  CHECK(names_in(folder / "new") == Names{"a", "b"});
}

TEST_CASE("the staging folder of a killed run is emptied and used again") {
  const TempFolder folder;
  test::Child child([&](const std::function<void()>& ready) {
    OutputFolder output(folder / "new", Existing::kRefuse);
    put(output, "sub/deep/stale", "stale");
    put(output, "a", "stale");
    ready();
    ::pause();
    return 0;
  });
  child.kill(SIGKILL);
  child.wait();
  CHECK(folder.names() == Names{".new.masque-tmp"});
  OutputFolder output(folder / "new", Existing::kRefuse);
  put(output, "a", "fresh");
  output.commit();
  CHECK(folder.names() == Names{"new"});
  CHECK(list_files(folder / "new") == Names{"a"});
  CHECK(read_file(folder / "new/a") == "fresh");
}

TEST_CASE("a folder that somebody else filled meanwhile is left as it is") {
  const TempFolder folder;
  {
    OutputFolder output(folder / "new", Existing::kRefuse);
    put(output, "a", "A");
    write_file(folder / "new/theirs", "theirs");
    CHECK(contains(message_of([&] { output.commit(); }),
                   "was filled by another process meanwhile; left as it is"));
  }
  CHECK(names_in(folder / "new") == Names{"theirs"});
  CHECK(folder.names() == Names{"new"});
}

TEST_CASE("a file is created once and never through a link") {
  const TempFolder folder;
  write_file(folder / "outside", "outside");
  OutputFolder output(folder / "new", Existing::kRefuse);
  put(output, "a", "A");
  CHECK(contains(message_of([&] { output.create("a", 0644); }), "new/a: writing: File exists"));
  const std::string link = output.staging_path() + "/link";
  REQUIRE(::symlink("../outside", link.c_str()) == 0);
  CHECK(contains(message_of([&] { output.create("link", 0644); }), "writing: File exists"));
  CHECK(read_file(folder / "outside") == "outside");
}

TEST_CASE("long and odd folder names work") {
  const TempFolder folder;
  for (const std::string& name :
       {std::string(255, 'n'), std::string("a\nb"), std::string("\xFF")}) {
    OutputFolder output(folder / name, Existing::kRefuse);
    put(output, "a", "A");
    output.commit();
    CHECK(read_file(folder / (name + "/a")) == "A");
  }
  CHECK(folder.names().size() == 3);
}

TEST_CASE("a listing follows links to files only and leaves leftovers out") {
  const TempFolder folder;
  write_file(folder / "z", "");
  write_file(folder / "sub/b", "");
  write_file(folder / "sub/.hidden", "");
  write_file(folder / ".model.masque-tmp", "");
  write_file(folder / ".dir.masque-tmp/x", "");
  std::filesystem::create_symlink("sub/b", folder / "link");
  std::filesystem::create_directory_symlink("..", folder / "sub/up");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("nowhere", folder / "dangling");
  Names left_out;
  CHECK(list_files(folder.path(), &left_out) == Names{"link", "sub/.hidden", "sub/b", "z"});
  CHECK(left_out == Names{"dangling", "pipe", "sub/up"});
  CHECK(contains(message_of([&] { list_files(folder / "none"); }), "no such folder"));
}

TEST_CASE("links of a snapshot into the blobs of its model stay inside") {
  const TempFolder folder;
  const std::string model = folder / "models--own--small";
  const std::string snapshot = model + "/snapshots/main";
  write_file(model + "/blobs/a", "x");
  write_file(folder / "models--own--other/blobs/a", "x");
  write_file(snapshot + "/inner/plain", "x");
  const auto link = [&](const std::string& target, const std::string& name) {
    std::filesystem::create_symlink(target, snapshot + "/" + name);
  };
  link("../../blobs/a", "own");
  link("../../../blobs/a", "inner/own");
  link("../../../models--own--other/blobs/a", "other");
  link("inner/plain", "near");
  CHECK(links_outside(snapshot, {"near", "other", "own"}) == Names{"other"});
  CHECK(links_outside(snapshot + "/inner", {"own", "plain"}).empty());
  // Such names elsewhere are no cache.
  std::filesystem::rename(model, folder / "small");
  CHECK(links_outside(folder / "small/snapshots/main", {"near", "own"}) == Names{"own"});
}

TEST_CASE("removing a tree does not follow links") {
  const TempFolder folder;
  write_file(folder / "kept/x", "x");
  write_file(folder / "tree/sub/y", "y");
  std::filesystem::create_directory_symlink("../kept", folder / "tree/link");
  remove_tree(open_folder(folder.path()).get(), "tree");
  CHECK(folder.names() == Names{"kept"});
  CHECK(names_in(folder / "kept") == Names{"x"});
  std::filesystem::create_directory_symlink("kept", folder / "alias");
  remove_tree(open_folder(folder.path()).get(), "alias");
  CHECK(names_in(folder / "kept") == Names{"x"});
}

}  // namespace
}  // namespace masque
