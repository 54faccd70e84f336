// Reading and writing files: bounds, odd kinds of files, interruptions, names.
#include "base/file/file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include <doctest/doctest.h>

#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

using test::contains;
using test::Faults;
using test::message_of;
using test::TempFolder;

std::string read_part(const InputFile& file, std::uint64_t offset, std::size_t size) {
  std::string text(size, '?');
  file.read(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST_CASE("a part of a file is read from where it is") {
  const TempFolder folder;
  test::write_file(folder / "f", "0123456789");
  const InputFile file = InputFile::open(folder / "f");
  CHECK(file.size() == 10);
  CHECK(file.path() == folder / "f");
  CHECK(read_part(file, 0, 10) == "0123456789");
  CHECK(read_part(file, 3, 4) == "3456");
  CHECK(read_part(file, 10, 0).empty());
  CHECK(file.read_all(10) == "0123456789");
}

TEST_CASE("bytes beyond the size of a file are refused") {
  const TempFolder folder;
  test::write_file(folder / "f", "0123456789");
  const InputFile file = InputFile::open(folder / "f");
  CHECK(contains(message_of([&] { read_part(file, 8, 3); }), "bytes 8 to 11 needed, file has 10"));
  CHECK(contains(message_of([&] { read_part(file, 11, 0); }), "needed, file has 10"));
  CHECK(contains(message_of([&] { read_part(file, ~std::uint64_t{0}, 2); }), "file has 10"));
  CHECK(contains(message_of([&] { file.read_all(9); }), "has 10 bytes, expected at most 9"));
}

TEST_CASE("a file that shrinks while it is read is named") {
  const TempFolder folder;
  test::write_file(folder / "f", "0123456789");
  const InputFile file = InputFile::open(folder / "f");
  test::write_file(folder / "f", "0123");
  CHECK(contains(message_of([&] { read_part(file, 2, 6); }),
                 "ends at byte 4, was 10 bytes when opened"));
}

TEST_CASE("what is no regular file is refused by its kind, without waiting") {
  const TempFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(contains(message_of([&] { InputFile::open(folder.path()); }), "is a folder, expected"));
  CHECK(contains(message_of([&] { InputFile::open(folder / "pipe"); }), "is a pipe, expected"));
  CHECK(contains(message_of([] { InputFile::open("/dev/null"); }), "is a device, expected"));
}

TEST_CASE("a file that cannot be opened is named safely") {
  const TempFolder folder;
  const std::string message = message_of([&] { InputFile::open(folder / "no\x1b\nname"); });
  CHECK(contains(message, "no\\x1b\\nname: opening: No such file or directory"));
}

TEST_CASE("interrupted and short reads go on") {
  const TempFolder folder;
  test::write_file(folder / "f", "0123456789");
  const InputFile file = InputFile::open(folder / "f");
  int calls = 0;
  const Faults faults(
      [&](os::Call call, std::string_view, std::size_t) -> std::optional<os::Fault> {
        if (call == os::Call::kOpen) return std::nullopt;
        if (++calls % 2 == 1) return os::Fault{.error = EINTR};
        return os::Fault{.count = 3};
      });
  CHECK(file.read_all(100) == "0123456789");
  CHECK(calls == 8);
  calls = 0;
  CHECK(read_text(folder / "f", 100) == "0123456789");
  CHECK(calls == 10);  // the last read finds the end
}

TEST_CASE("a failing read is an error that names the file") {
  const TempFolder folder;
  test::write_file(folder / "f", "0123456789");
  const InputFile file = InputFile::open(folder / "f");
  const Faults faults([](os::Call call, std::string_view, std::size_t) -> std::optional<os::Fault> {
    if (call == os::Call::kOpen) return std::nullopt;
    return os::Fault{.error = EIO};
  });
  const std::string expected = folder / "f" + ": reading: Input/output error";
  CHECK(message_of([&] { file.read_all(100); }) == expected);
  CHECK(message_of([&] { read_text(folder / "f", 100); }) == expected);
}

TEST_CASE("text is read from a file, a pipe and standard input") {
  const TempFolder folder;
  test::write_file(folder / "f", "some\ntext");
  CHECK(read_text(folder / "f", 9) == "some\ntext");
  CHECK(contains(message_of([&] { read_text(folder / "f", 8); }), "has more than 8 bytes"));
  CHECK(contains(message_of([&] { read_text(folder / "g", 8); }), "opening: No such file"));
  CHECK(contains(message_of([&] { read_text(folder.path(), 8); }), "reading: Is a directory"));
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const std::string piped(200'000, 'p');
  std::thread writer([&] {
    write_all(ends[1], as_bytes(piped), "pipe");
    ::close(ends[1]);
  });
  const int saved = ::dup(STDIN_FILENO);
  ::dup2(ends[0], STDIN_FILENO);
  const std::string text = read_text("-", 1 << 20);
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  ::close(ends[0]);
  writer.join();
  CHECK(text == piped);
}

TEST_CASE("a terminal is no standard input to read from") {
  const Descriptor terminal(::posix_openpt(O_RDWR | O_NOCTTY));
  REQUIRE(static_cast<bool>(terminal));
  REQUIRE(::grantpt(terminal.get()) == 0);
  REQUIRE(::unlockpt(terminal.get()) == 0);
  const Descriptor side(::open(::ptsname(terminal.get()), O_RDONLY | O_NOCTTY));
  REQUIRE(static_cast<bool>(side));
  const int saved = ::dup(STDIN_FILENO);
  ::dup2(side.get(), STDIN_FILENO);
  const std::string message = message_of<UsageError>([] { read_text("-", 100); });
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  CHECK(contains(message, "no input: standard input is a terminal; pipe data in, or use < FILE"));
}

TEST_CASE("short and interrupted writes go on") {
  const TempFolder folder;
  const Descriptor fd(::open((folder / "f").c_str(), O_RDWR | O_CREAT, 0600));
  int calls = 0;
  const Faults faults([&](os::Call, std::string_view, std::size_t) -> std::optional<os::Fault> {
    if (++calls % 2 == 1) return os::Fault{.error = EINTR};
    return os::Fault{.count = 4};
  });
  write_all(fd.get(), as_bytes("0123456789"), "f");
  CHECK(calls == 6);
  write_at(fd.get(), 2, as_bytes("abcdef"), "f");
  CHECK(calls == 10);
  CHECK(test::read_file(folder / "f") == "01abcdef89");
}

TEST_CASE("a write that fails or moves nothing is an error") {
  const TempFolder folder;
  const Descriptor fd(::open((folder / "f").c_str(), O_RDWR | O_CREAT, 0600));
  os::Fault fault{.error = EDQUOT};
  const Faults faults(
      [&](os::Call, std::string_view, std::size_t) -> std::optional<os::Fault> { return fault; });
  CHECK(message_of([&] { write_all(fd.get(), as_bytes("x"), "out"); }) ==
        "out: writing: Disk quota exceeded");
  CHECK(message_of([&] { write_at(fd.get(), 7, as_bytes("x"), "out"); }) ==
        "out: writing: Disk quota exceeded");
  fault = {.error = 0, .count = 0};
  CHECK(message_of([&] { write_all(fd.get(), as_bytes("x"), "out"); }) ==
        "out: writing: No space left on device");
  CHECK(message_of([&] { write_at(fd.get(), 7, as_bytes("x"), "out"); }) ==
        "out: writing: No space left on device");
}

TEST_CASE("a full pipe that does not block is waited for") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_NONBLOCK) == 0);
  const std::string sent(500'000, 'w');
  std::string got;
  std::thread reader([&] {
    std::array<char, 4096> buffer{};
    while (got.size() < sent.size()) {
      const ssize_t count = ::read(ends[0], buffer.data(), buffer.size());
      if (count > 0) got.append(buffer.data(), static_cast<std::size_t>(count));
    }
  });
  write_all(ends[1], as_bytes(sent), "pipe");
  reader.join();
  ::close(ends[0]);
  ::close(ends[1]);
  CHECK(got == sent);
}

TEST_CASE("a descriptor is closed once, by its last owner") {
  const int raw = ::open("/dev/null", O_RDONLY);
  {
    Descriptor first(raw);
    Descriptor second(std::move(first));
    CHECK(second.get() == raw);
    Descriptor third;
    CHECK_FALSE(static_cast<bool>(third));
    third = std::move(second);
    CHECK(third.get() == raw);
    CHECK(::fcntl(raw, F_GETFD) >= 0);
  }
  CHECK(::fcntl(raw, F_GETFD) < 0);
}

TEST_CASE("paths split into folder and name and join again") {
  struct {
    const char* path;
    const char* folder;
    const char* name;
  } const rows[] = {{"a", ".", "a"},     {"a/b", "a", "b"},   {"a/b/c", "a/b", "c"},
                    {"/a", "/", "a"},    {"/a/b", "/a", "b"}, {"a/", ".", "a"},
                    {"a/b//", "a", "b"}, {"./a", ".", "a"},   {"..", ".", ".."},
                    {"/", "/", ""},      {"", ".", ""}};
  for (const auto& row : rows) {
    CAPTURE(row.path);
    CHECK(folder_of(row.path) == row.folder);
    CHECK(base_name(row.path) == row.name);
  }
  CHECK(join("a", "b") == "a/b");
  CHECK(join("a/", "b") == "a/b");
  CHECK(join("/", "b") == "/b");
  CHECK(join(".", "b") == "b");
  CHECK(join("", "b") == "b");
}

TEST_CASE("folders and existing names are recognised, links as what they are") {
  const TempFolder folder;
  test::write_file(folder / "f", "");
  REQUIRE(::symlink("nowhere", (folder / "dangling").c_str()) == 0);
  REQUIRE(::symlink(".", (folder / "here").c_str()) == 0);
  CHECK(is_folder(folder.path()));
  CHECK(is_folder(folder / "here"));
  CHECK_FALSE(is_folder(folder / "f"));
  CHECK_FALSE(is_folder(folder / "dangling"));
  CHECK(exists(folder / "f"));
  CHECK(exists(folder / "dangling"));
  CHECK_FALSE(exists(folder / "g"));
  CHECK(contains(message_of([&] { open_folder(folder / "f"); }), "not a folder"));
}

TEST_CASE("the name of a folder that is made is on the disk") {
  const TempFolder folder;
  const std::string path = folder / "new";
  std::vector<os::Call> calls;
  {
    const Faults faults([&](os::Call call, std::string_view, std::size_t) {
      calls.push_back(call);
      return std::nullopt;
    });
    make_folder(path);
  }
  CHECK(is_folder(path));
  REQUIRE_FALSE(calls.empty());
  CHECK(calls.back() == os::Call::kSync);
  make_folder(path);  // is there, and stays
  test::write_file(path + "/file", "");
  CHECK(message_of([&] { make_folder(path + "/file"); }) ==
        path + "/file: is not a folder, expected one or a new name");
  const Faults faults([&](os::Call call, std::string_view, std::size_t) {
    return call == os::Call::kSync ? std::optional<os::Fault>({.error = EIO}) : std::nullopt;
  });
  CHECK(contains(message_of([&] { make_folder(path + "/deep"); }),
                 "deep: writing its folder to disk"));
}

}  // namespace
}  // namespace masque
