// A replaced file is old or new, and nothing is left next to it.
#include "base/file/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include <doctest/doctest.h>

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

void write(const OutputFile& output, std::string_view text) {
  write_all(output.descriptor(), as_bytes(text), output.path());
}

mode_t mode_of(const std::string& path) {
  struct stat info = {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

/// The umask of a scope.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(::umask(mask)) {}
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;
  ~Umask() { ::umask(before_); }

 private:
  mode_t before_;
};

TEST_CASE("a new file appears whole when it is committed") {
  const TempFolder folder;
  {
    OutputFile output(folder / "new");
    write(output, "content");
    CHECK_FALSE(exists(folder / "new"));
    CHECK(folder.names() == Names{".new.masque-tmp"});
    output.commit();
  }
  CHECK(folder.names() == Names{"new"});
  CHECK(read_file(folder / "new") == "content");
}

TEST_CASE("without a commit the old file stays and the temporary goes") {
  const TempFolder folder;
  write_file(folder / "f", "old");
  {
    const OutputFile output(folder / "f");
    write(output, "new and longer");
    CHECK(read_file(folder / "f") == "old");
  }
  CHECK(read_file(folder / "f") == "old");
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("a new file has the mode that the umask leaves") {
  const TempFolder folder;
  for (const auto& [mask, mode] :
       {std::pair<mode_t, mode_t>{022, 0644}, {077, 0600}, {002, 0664}}) {
    const Umask scope(mask);
    OutputFile output(folder / std::to_string(mask));
    CHECK(mode_of(folder / staging_name(std::to_string(mask))) == 0600);
    output.commit();
    CHECK(mode_of(folder / std::to_string(mask)) == mode);
  }
}

TEST_CASE("finding the mode of new files does not change the umask, not for a moment") {
  const TempFolder folder;
  const Umask scope(027);
  std::jthread finder([](const std::stop_token& stop) {
    while (!stop.stop_requested()) CHECK(new_file_mode() == 0640);
  });
  for (int i = 0; i < 2000; ++i) {
    write_file(folder / "f", "");
    REQUIRE(mode_of(folder / "f") == 0640);
    ::unlink((folder / "f").c_str());
  }
}

TEST_CASE("a replaced file keeps its mode") {
  const TempFolder folder;
  for (const mode_t mode : {0600U, 0640U, 0444U, 0755U}) {
    write_file(folder / "f", "old");
    REQUIRE(::chmod((folder / "f").c_str(), mode) == 0);
    OutputFile output(folder / "f");
    write(output, "new");
    output.commit();
    CHECK(mode_of(folder / "f") == mode);
    CHECK(read_file(folder / "f") == "new");
    ::unlink((folder / "f").c_str());
  }
}

TEST_CASE("a symbolic link is not replaced and not followed") {
  const TempFolder folder;
  write_file(folder / "real", "real");
  REQUIRE(::symlink("real", (folder / "link").c_str()) == 0);
  REQUIRE(::symlink("nowhere", (folder / "dangling").c_str()) == 0);
  CHECK(message_of([&] { OutputFile(folder / "link"); }) ==
        folder / "link" +
            ": is a symbolic link to 'real', expected a plain file or a new name for "
            "the output");
  CHECK(contains(message_of([&] { OutputFile(folder / "dangling"); }),
                 "is a symbolic link to 'nowhere'"));
  CHECK(folder.names() == Names{"dangling", "link", "real"});
}

TEST_CASE("a link into a hash-named cache is named as one") {
  const TempFolder folder;
  const std::string git(40, 'a');
  const std::string sha(64, '0');
  const std::string other(41, 'a');
  const auto message_for = [&](const std::string& name) {
    const std::string link = folder / ("to-" + name);
    REQUIRE(::symlink(("../../blobs/" + name).c_str(), link.c_str()) == 0);
    return message_of([&] { refuse_unsafe_target(link); });
  };
  CHECK(contains(message_for(git), "in a hash-named cache, expected"));
  CHECK(contains(message_for(sha), "in a hash-named cache, expected"));
  CHECK_FALSE(contains(message_for(other), "cache"));
  CHECK(contains(message_for(other + "2"), "is a symbolic link"));
}

TEST_CASE("an entry of a hash-named cache is not replaced") {
  const TempFolder folder;
  const std::string hash = "0123456789abcdef0123456789abcdef01234567";
  write_file(folder / ("blobs/" + hash), "x");
  write_file(folder / ("other/" + hash), "x");
  write_file(folder / "blobs/plain", "x");
  CHECK(contains(message_of([&] { OutputFile(folder / ("blobs/" + hash)); }),
                 "is an entry of a hash-named cache, expected another output"));
  CHECK(message_of([&] { refuse_unsafe_target(folder / ("other/" + hash)); }) ==
        "(nothing thrown)");
  CHECK(message_of([&] { refuse_unsafe_target(folder / "blobs/plain"); }) == "(nothing thrown)");
}

TEST_CASE("what is no file is not replaced") {
  const TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  write_file(folder / "sub/x", "x");
  CHECK(contains(message_of([&] { OutputFile(folder / "pipe"); }), "is not a regular file"));
  CHECK(contains(message_of([&] { OutputFile(folder / "sub"); }), "is not a regular file"));
  CHECK(contains(message_of([&] { OutputFile(folder / "new/"); }), "is a folder, expected a file"));
  CHECK(contains(message_of([&] { OutputFile(folder / "none/new"); }),
                 "no such folder, expected one that exists"));
  CHECK(contains(message_of([&] { OutputFile(folder / "sub/x/new"); }), "Not a directory"));
  CHECK(folder.names() == Names{"pipe", "sub"});
}

TEST_CASE("a second writer of the same file is refused and the first goes on") {
  const TempFolder folder;
  OutputFile first(folder / "f");
  write(first, "first");
  CHECK(message_of([&] { OutputFile(folder / "f"); }) ==
        folder / "f" + ": is being written by another process");
  first.commit();
  CHECK(read_file(folder / "f") == "first");
  OutputFile later(folder / "f");
  write(later, "later");
  later.commit();
  CHECK(read_file(folder / "f") == "later");
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("another process that writes the same file is respected") {
  const TempFolder folder;
  test::Child child([&](const std::function<void()>& ready) {
    OutputFile output(folder / "f");
    ready();
    ::pause();
    return 0;
  });
  CHECK(contains(message_of([&] { OutputFile(folder / "f"); }),
                 "is being written by another process"));
}

TEST_CASE("the temporary of a killed run is used again and so removed") {
  const TempFolder folder;
  write_file(folder / "f", "old");
  test::Child child([&](const std::function<void()>& ready) {
    const OutputFile output(folder / "f");
    write(output, "a long content that was never finished");
    ready();
    ::pause();
    return 0;
  });
  child.kill(SIGKILL);
  CHECK(child.wait() == 128 + SIGKILL);
  CHECK(folder.names() == Names{".f.masque-tmp", "f"});
  OutputFile output(folder / "f");
  write(output, "new");
  output.commit();
  CHECK(read_file(folder / "f") == "new");
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("something else in the temporary's place is not written into") {
  const TempFolder folder;
  write_file(folder / "secret", "secret");
  REQUIRE(::symlink("secret", (folder / ".f.masque-tmp").c_str()) == 0);
  CHECK(contains(message_of([&] { OutputFile(folder / "f"); }),
                 ".f.masque-tmp blocks the output's temporary file"));
  CHECK(read_file(folder / "secret") == "secret");
  write_file(folder / ".g.masque-tmp/x", "x");
  CHECK(contains(message_of([&] { OutputFile(folder / "g"); }), ".g.masque-tmp blocks"));
  CHECK(read_file(folder / ".g.masque-tmp/x") == "x");
}

TEST_CASE("a file with several names is not replaced and a shared temporary not written into") {
  const TempFolder folder;
  write_file(folder / "f", "shared");
  REQUIRE(::link((folder / "f").c_str(), (folder / "other").c_str()) == 0);
  CHECK(contains(message_of([&] { OutputFile(folder / "f"); }),
                 "has 2 hard links, expected a file with one name"));
  REQUIRE(::link((folder / "f").c_str(), (folder / ".g.masque-tmp").c_str()) == 0);
  {
    OutputFile output(folder / "g");
    write(output, "new");
    output.commit();
  }
  CHECK(read_file(folder / "g") == "new");
  CHECK(read_file(folder / "f") == "shared");
  CHECK(folder.names() == Names{"f", "g", "other"});
}

TEST_CASE("what another user left or owns is respected") {
  if (::geteuid() != 0) return;  // only root can make files of others
  constexpr uid_t kOther = 12345;
  const TempFolder folder;
  write_file(folder / "f", "old");
  REQUIRE(::chown((folder / "f").c_str(), kOther, kOther) == 0);
  REQUIRE(::chmod((folder / "f").c_str(), 0640) == 0);
  write_file(folder / ".f.masque-tmp", "left by somebody else");
  REQUIRE(::chown((folder / ".f.masque-tmp").c_str(), kOther, kOther) == 0);
  OutputFile output(folder / "f");
  write(output, "new");
  output.commit();
  struct stat info = {};
  REQUIRE(::stat((folder / "f").c_str(), &info) == 0);
  CHECK(info.st_uid == kOther);
  CHECK(info.st_gid == kOther);
  CHECK((info.st_mode & 07777U) == 0640);
  CHECK(read_file(folder / "f") == "new");
}

TEST_CASE("names of every legal length and spelling can be replaced") {
  const TempFolder folder;
  for (const std::string& name :
       {std::string(255, 'n'), std::string(244, 'n'), std::string(243, 'n'), std::string("a\nb"),
        std::string("\xFF\xFE"), std::string(" "), std::string("-o"), std::string(".x")}) {
    write_file(folder / name, "old");
    OutputFile output(folder / name);
    write(output, "new");
    output.commit();
    CHECK(read_file(folder / name) == "new");
    CHECK(folder.names() == Names{name});
    ::unlink((folder / name).c_str());
  }
}

TEST_CASE("the temporary's name is hidden, short enough and always the same") {
  CHECK(staging_name("model.safetensors") == ".model.safetensors.masque-tmp");
  CHECK(staging_name(std::string(243, 'n')).size() == 255);
  const std::string shortened = staging_name(std::string(244, 'n'));
  CHECK(shortened.size() < 60);
  CHECK(shortened.starts_with('.'));
  CHECK(shortened.ends_with(".masque-tmp"));
  CHECK(shortened == staging_name(std::string(244, 'n')));
  CHECK(shortened != staging_name(std::string(245, 'n')));
}

TEST_CASE("a target that somebody else changed meanwhile is left as it is") {
  const TempFolder folder;
  const auto message_after = [&](const std::function<void()>& change) {
    OutputFile output(folder / "f");
    write(output, "ours");
    change();
    return message_of([&] { output.commit(); });
  };
  const std::string expected = "was changed by another process meanwhile; left as it is";
  write_file(folder / "f", "old");
  CHECK(contains(message_after([&] { write_file(folder / "f", "longer than old"); }), expected));
  CHECK(read_file(folder / "f") == "longer than old");
  CHECK(contains(message_after([&] { ::unlink((folder / "f").c_str()); }), expected));
  CHECK_FALSE(exists(folder / "f"));
  CHECK(contains(message_after([&] { write_file(folder / "f", "theirs"); }), expected));
  CHECK(read_file(folder / "f") == "theirs");
  const auto replace = [&] {  // another file with the same size
    write_file(folder / "other", "THEIRS");
    REQUIRE(::rename((folder / "other").c_str(), (folder / "f").c_str()) == 0);
  };
  CHECK(contains(message_after(replace), expected));
  CHECK(read_file(folder / "f") == "THEIRS");
  for (const timespec step : {timespec{1, 0}, timespec{0, 1000}}) {
    const auto touch = [&] {  // same size and file, other time
      struct stat info = {};
      REQUIRE(::stat((folder / "f").c_str(), &info) == 0);
      const timespec time = {info.st_mtim.tv_sec - step.tv_sec,
                             (info.st_mtim.tv_nsec + step.tv_nsec) % 1'000'000'000};
      const timespec times[2] = {time, time};
      REQUIRE(::utimensat(AT_FDCWD, (folder / "f").c_str(), times, 0) == 0);
    };
    CHECK(contains(message_after(touch), expected));
  }
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("a failed sync is final") {
  const TempFolder folder;
  write_file(folder / "f", "old");
  int syncs = 0;
  {
    OutputFile output(folder / "f");
    write(output, "new");
    const test::Faults faults(
        [&](os::Call call, std::string_view, std::size_t) -> std::optional<os::Fault> {
          if (call != os::Call::kSync || ++syncs > 1) return std::nullopt;
          return os::Fault{.error = EIO};
        });
    CHECK(contains(message_of([&] { output.commit(); }), "writing to disk: Input/output error"));
  }
  CHECK(syncs == 1);
  CHECK(read_file(folder / "f") == "old");
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("where only the name is not synced, the message says that the new file is in place") {
  const TempFolder folder;
  write_file(folder / "f", "old");
  {
    OutputFile output(folder / "f");
    write(output, "new");
    bool renamed = false;
    const test::Faults faults(
        [&](os::Call call, std::string_view, std::size_t) -> std::optional<os::Fault> {
          renamed = renamed || call == os::Call::kRename;
          if (!renamed || call != os::Call::kSync) return std::nullopt;
          return os::Fault{.error = EIO};
        });
    CHECK(contains(message_of([&] { output.commit(); }),
                   "f: the new file is in place, writing its folder to disk: Input/output error"));
  }
  CHECK(read_file(folder / "f") == "new");
  CHECK(folder.names() == Names{"f"});
}

TEST_CASE("a file system without locks is written to all the same") {
  const TempFolder folder;
  for (const int error : {ENOLCK, EOPNOTSUPP}) {
    const test::Faults faults(
        [&](os::Call call, std::string_view, std::size_t) -> std::optional<os::Fault> {
          if (call != os::Call::kLock) return std::nullopt;
          return os::Fault{.error = error};
        });
    OutputFile output(folder / "f");
    write(output, "unlocked");
    output.commit();
    CHECK(read_file(folder / "f") == "unlocked");
  }
}

}  // namespace
}  // namespace masque
