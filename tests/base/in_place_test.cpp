#include "base/file/in_place.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file/output_folder.hpp"
#include "base/file/undo_journal.hpp"
#include "support/child.hpp"
#include "support/faults.hpp"
#include "support/in_place_example.hpp"
#include "support/message.hpp"

namespace masque::test {
namespace {

/// A change that stopped with everything written and the journal still there.
void leave_unfinished(const InPlaceExample& example) {
  bool cut = false;
  const Faults faults([&](os::Call call, std::string_view path, std::size_t) {
    cut = cut || (call == os::Call::kUnlink && path.ends_with(".undo"));
    return cut ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
  });
  CHECK_THROWS_AS(example.change(), InputError);
}

TEST_CASE("a change in place: bytes of two files, a file replaced, a file made") {
  const TempFolder folder;
  const InPlaceExample example(folder);
  struct stat before = {};
  REQUIRE(::stat((folder / "a").c_str(), &before) == 0);
  example.change();
  CHECK(example.state() == InPlaceExample::State::kNew);
  struct stat after = {};
  REQUIRE(::stat((folder / "a").c_str(), &after) == 0);
  CHECK(before.st_ino == after.st_ino);
  CHECK(folder.names() == std::vector<std::string>{"a", "b", "made", "text"});
}

TEST_CASE("what was written can be read before it is there, and only what differs is written") {
  const TempFolder folder;
  write_file(folder / "a", std::string(4000, 'x'));
  const LockedFiles locked(folder.path(), {"a"}, 0);
  InPlaceChange change(locked);
  change.write(0, 100, as_bytes(std::string(10, 'x')));
  CHECK(change.bytes() == 0);
  change.write(0, 510, as_bytes("yyyy"));
  change.write(0, 2000, as_bytes("z"));
  // Blocks of 512 bytes, as far as they were written at all.
  CHECK(change.ranges(0) ==
        std::vector<std::pair<std::uint64_t, std::uint64_t>>{{510, 4}, {2000, 1}});
  std::string seen(4000, ' ');
  change.read(0, 0, std::as_writable_bytes(std::span(seen)));
  std::string wanted(4000, 'x');
  wanted.replace(510, 4, "yyyy");
  wanted[2000] = 'z';
  CHECK(seen == wanted);
  CHECK(read_file(folder / "a") == std::string(4000, 'x'));
  change.write(0, 2000, as_bytes("x"));  // thought better of
  change.commit();
  wanted[2000] = 'x';
  CHECK(read_file(folder / "a") == wanted);
}

TEST_CASE("a change of nothing writes nothing, and one that is not committed neither") {
  const TempFolder folder;
  write_file(folder / "a", "same");
  const LockedFiles locked(folder.path(), {"a"}, 0);
  {
    InPlaceChange change(locked);
    change.write(0, 0, as_bytes("same"));
    int syncs = 0;
    const Faults faults([&](os::Call call, std::string_view, std::size_t) {
      syncs += call == os::Call::kSync ? 1 : 0;
      return std::optional<os::Fault>();
    });
    change.commit();
    CHECK(syncs == 0);
  }
  {
    InPlaceChange change(locked);
    change.write(0, 0, as_bytes("diff"));
  }
  CHECK(read_file(folder / "a") == "same");
  CHECK(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE(
    "where only the journal's removal is not synced, the message says that the change is made") {
  const TempFolder folder;
  const InPlaceExample example(folder);
  bool removed = false;
  const Faults faults([&](os::Call call, std::string_view path, std::size_t) {
    removed = removed || (call == os::Call::kUnlink && path.ends_with(".undo"));
    const bool fails = removed && call == os::Call::kSync;
    return fails ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
  });
  CHECK(contains(message_of([&] { example.change(); }),
                 ": the change is made, writing the folder to disk: Input/output error"));
  CHECK(example.state() == InPlaceExample::State::kNew);
}

TEST_CASE("a check that throws takes the change back") {
  const TempFolder folder;
  const InPlaceExample example(folder);
  CHECK_THROWS_AS(example.change([&] {
    CHECK(example.state() == InPlaceExample::State::kNew);
    throw InputError("check", "says no");
  }),
                  InputError);
  CHECK(example.state() == InPlaceExample::State::kOld);
  CHECK(folder.names() == std::vector<std::string>{"a", "b", "text"});
}

TEST_CASE("an unfinished change stops readers, and the next one who locks takes it back") {
  const TempFolder folder;
  const InPlaceExample example(folder);
  leave_unfinished(example);
  CHECK(example.state() == InPlaceExample::State::kNew);
  for (const char* name : {"a", "b"}) {
    const std::string names[] = {name};
    CHECK(contains(message_of([&] { refuse_unfinished(folder.path(), names); }),
                   "a: a change in place was interrupted: `embed-fix recover "));
  }
  const std::string other[] = {"other"};
  CHECK_NOTHROW(refuse_unfinished(folder.path(), other));
  // A journal is no file of a folder that would be copied.
  CHECK(list_files(folder.path()) == std::vector<std::string>{"a", "b", "made", "text"});
  {
    // By any of the files; the others are then locked as well.
    const LockedFiles locked(folder.path(), {"b"}, 0);
    CHECK(locked.recovered() == std::vector<std::string>{"a", "b", "made", "text"});
    CHECK(locked.files().size() == 2);
  }
  CHECK(example.state() == InPlaceExample::State::kOld);
  CHECK(folder.names() == std::vector<std::string>{"a", "b", "text"});
  const LockedFiles again(folder.path(), {"a", "b"}, 0);
  CHECK(again.recovered().empty());
}

TEST_CASE("a journal of other files than those that are there is left alone") {
  for (const char* name : {"a", "text"}) {
    const TempFolder folder;
    const InPlaceExample example(folder);
    leave_unfinished(example);
    const std::string now = read_file(folder / name);
    std::filesystem::remove(folder / name);
    write_file(folder / "somebody", "else's");  // takes the place that became free
    write_file(folder / name, now + "!");
    const std::string message =
        message_of([&] { const LockedFiles locked(folder.path(), {"a"}, 0); });
    CHECK(contains(message, ".a.undo: '" + std::string(name) + "' is not the file"));
    CHECK(std::filesystem::exists(folder / ".a.undo"));
    CHECK(read_file(folder / name) == now + "!");
  }
}

TEST_CASE("a damaged journal of an interrupted change is refused, and stays") {
  const TempFolder folder;
  const InPlaceExample example(folder);
  leave_unfinished(example);
  const std::string journal = read_file(folder / ".a.undo");
  const Descriptor opened = open_folder(folder.path());
  REQUIRE(read_undo_journal(opened.get(), folder.path(), ".a.undo"));
  const auto require_refused = [&](const std::string& text) {
    write_file(folder / ".a.undo", text);
    const auto is_refused = [&](const std::function<void()>& run) {
      return contains(message_of(run), ".a.undo: is damaged and cannot undo the change");
    };
    REQUIRE(is_refused([&] { read_undo_journal(opened.get(), folder.path(), ".a.undo"); }));
    // Readers and writers alike, by each of the files.
    for (const std::string name : {"a", "b"}) {
      if (name == "b" && text.size() < 8) continue;  // nothing tells any more whose it is
      REQUIRE(is_refused([&] { refuse_unfinished(folder.path(), std::span(&name, 1)); }));
      REQUIRE(is_refused([&] { const LockedFiles locked(folder.path(), {name}, 0); }));
    }
    REQUIRE(read_file(folder / ".a.undo") == text);
  };
  for (std::size_t size = 0; size < journal.size(); ++size) {
    CAPTURE(size);
    require_refused(journal.substr(0, size));
  }
  require_refused(journal + "x");
  for (std::size_t at = 0; at < journal.size(); ++at) {
    CAPTURE(at);
    std::string flipped = journal;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    require_refused(flipped);
  }
  CHECK(example.state() == InPlaceExample::State::kNew);
  write_file(folder / ".a.undo", journal);
  CHECK_FALSE(LockedFiles(folder.path(), {"a"}, 0).recovered().empty());
  CHECK(example.state() == InPlaceExample::State::kOld);
}

TEST_CASE("a journal that was being written stops nobody and goes, but no other program's file") {
  const TempFolder folder;
  const InPlaceExample example(folder);
  {
    // Killed before the journal got its name.
    bool killed = false;
    const Faults faults([&](os::Call call, std::string_view, std::size_t) {
      killed = killed || call == os::Call::kRename;
      return killed ? std::optional(os::Fault{.error = EIO}) : std::nullopt;
    });
    CHECK_THROWS_AS(example.change(), InputError);
  }
  CHECK(std::filesystem::exists(folder / "..a.undo.masque-tmp"));
  write_file(folder / ".c.undo", "of another program, by its name alone");
  const std::string names[] = {"a"};
  CHECK_NOTHROW(refuse_unfinished(folder.path(), names));
  const LockedFiles locked(folder.path(), {"a"}, 0);
  CHECK(locked.recovered().empty());
  CHECK_FALSE(std::filesystem::exists(folder / "..a.undo.masque-tmp"));
  CHECK(std::filesystem::exists(folder / ".c.undo"));
  CHECK(example.state() == InPlaceExample::State::kOld);
}

TEST_CASE("what is not changed in place") {
  const TempFolder folder;
  write_file(folder / "a", "x");
  std::filesystem::create_hard_link(folder / "a", folder / "hard");
  std::filesystem::create_symlink("a", folder / "soft");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto message = [&](const char* name) {
    return message_of([&] { const LockedFiles locked(folder.path(), {name}, 0); });
  };
  CHECK(contains(message("hard"), "has 2 hard links"));
  CHECK(contains(message("soft"), "is a symbolic link to 'a'"));
  CHECK(contains(message("pipe"), "is not a regular file"));
  CHECK(contains(message("none"), "No such file"));
}

TEST_CASE("a file that somebody else replaced or wrote meanwhile is left as it is") {
  for (const bool replaced : {false, true}) {
    const TempFolder folder;
    write_file(folder / "a", "old");
    const LockedFiles locked(folder.path(), {"a"}, 0);
    InPlaceChange change(locked);
    change.write(0, 0, as_bytes("new"));
    ::usleep(50'000);  // times of files may be as coarse as the clock's ticks
    if (replaced) std::filesystem::remove(folder / "a");
    write_file(folder / "a", "his");
    CHECK(contains(message_of([&] { change.commit(); }), "was changed by another process"));
    CHECK(read_file(folder / "a") == "his");
    CHECK_FALSE(std::filesystem::exists(folder / ".a.undo"));
  }
}

TEST_CASE("a locked file is refused, or waited for") {
  const TempFolder folder;
  write_file(folder / "a", "x");
  Child holder([&](const auto& ready) {
    const LockedFiles locked(folder.path(), {"a"}, 0);
    ready();
    ::usleep(300'000);
    return 0;
  });
  CHECK(contains(message_of([&] { const LockedFiles locked(folder.path(), {"a"}, 0); }),
                 "is being changed by another process (wait SECONDS waits)"));
  CHECK_NOTHROW(LockedFiles(folder.path(), {"a"}, 30));
  CHECK(holder.wait() == 0);
}

TEST_CASE("several processes that change one file at once: every change arrives") {
  const TempFolder folder = TempFolder::in_memory();
  constexpr int kProcesses = 4;
  constexpr int kTurns = 25;
  write_file(folder / "a", std::string(2000, '\0'));
  const auto add_one = [&](int process) {
    for (int turn = 0; turn < kTurns; ++turn) {
      const LockedFiles locked(folder.path(), {"a"}, 60);
      InPlaceChange change(locked);
      for (const std::size_t place :
           {std::size_t{0}, std::size_t{1000} + 4U * static_cast<unsigned>(process)}) {
        std::uint32_t count = 0;
        const auto bytes = std::as_writable_bytes(std::span(&count, 1));
        change.read(0, place, bytes);
        ++count;
        change.write(0, place, bytes);
      }
      change.commit();
    }
    return 0;
  };
  {
    std::vector<std::unique_ptr<Child>> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(std::make_unique<Child>([&](const auto& ready) {
        ready();
        return add_one(i);
      }));
    }
    for (const auto& child : children) CHECK(child->wait() == 0);
  }
  const std::string result = read_file(folder / "a");
  std::uint32_t sum = 0;
  std::memcpy(&sum, result.data(), sizeof sum);
  CHECK(sum == kProcesses * kTurns);
  CHECK(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("killed at any moment: old or new, after whoever comes next") {
  const TempFolder folder = TempFolder::in_memory();
  const std::string old(3 << 20, 'o');
  const std::string other(3 << 20, 'n');
  int unfinished = 0;
  for (int turn = 0; turn < 60; ++turn) {
    write_file(folder / "a", old);
    {
      Child child([&](const auto& ready) {
        ready();
        const LockedFiles locked(folder.path(), {"a"}, 0);
        InPlaceChange change(locked);
        change.write(0, 0, as_bytes(other));
        change.commit();
        return 0;
      });
      ::usleep(static_cast<unsigned>(turn) * 150);
      child.kill(SIGKILL);
      child.wait();
    }
    const LockedFiles locked(folder.path(), {"a"}, 0);
    unfinished += locked.recovered().empty() ? 0 : 1;
    const std::string now = read_file(folder / "a");
    REQUIRE((now == old || now == other));
    REQUIRE(folder.names() == std::vector<std::string>{"a"});
  }
  MESSAGE(unfinished, " of 60 changes were taken back");
}

}  // namespace
}  // namespace masque::test
