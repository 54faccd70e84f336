// Bytes arrive where they belong from any source, on any number of threads, by any way of copying.
#include "store/transfer.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

#include <doctest/doctest.h>

#include "base/digest/crc32c.hpp"
#include "base/error.hpp"
#include "store/zip/zip_stream.hpp"
#include "support/faults.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::store {
namespace {

using test::contains;
using test::message_of;
using test::read_file;
using test::TempFolder;
using test::write_file;

Descriptor create(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
}

std::string pattern(std::size_t size, std::size_t start = 0) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 + i / 251 + start);
  return text;
}

/// A source that computes a text.
Computed computed(const std::string& text, std::uint64_t chunk) {
  const auto fill = [&text, chunk](std::uint64_t offset, MutableBytes out) {
    MASQUE_CHECK(offset % chunk == 0 && out.size() <= chunk);
    std::copy_n(as_bytes(text).begin() + static_cast<long>(offset), out.size(), out.begin());
  };
  return {.fill = fill, .chunk_bytes = chunk};
}

TEST_CASE("pieces of all kinds arrive in place on any number of threads") {
  const TempFolder folder;
  const std::string copied = pattern(20'000'000, 1);  // several chunks
  const std::string made = pattern(1003, 2);
  const std::string literal = pattern(77, 3);
  write_file(folder / "from", copied);
  const InputFile from = InputFile::open(folder / "from");
  for (const int threads : {1, 2, 5}) {
    const Descriptor a = create(folder / "a");
    const Descriptor b = create(folder / "b");
    const std::vector<OutputRange> pieces = {
        {a.get(), "a", 0, literal.size(), Literal{literal}},
        {a.get(), "a", literal.size(), made.size(), computed(made, 100)},
        {a.get(), "a", 2000, copied.size() - 5, CopyFrom{&from, 5}},
        {b.get(), "b", 0, 0, CopyFrom{&from, 0}},
        {b.get(), "b", 1, 0, Literal{}},
        {b.get(), "b", 3, made.size(), computed(made, 1)},
    };
    transfer(pieces, threads, {});
    const std::string hole(2000 - literal.size() - made.size(), '\0');
    CAPTURE(threads);
    CHECK(read_file(folder / "a") == literal + made + hole + copied.substr(5));
    CHECK(read_file(folder / "b") == std::string(3, '\0') + made);
  }
}

TEST_CASE("sums of both kinds are those of the pieces in order, on any number of threads") {
  const TempFolder folder;
  const std::string copied = pattern(20'000'000, 1);  // several chunks
  const std::string made = pattern(1003, 2);
  write_file(folder / "from", copied);
  const InputFile from = InputFile::open(folder / "from");
  const std::string all = "abc" + copied + made;
  for (const int threads : {1, 2, 5}) {
    for (const Checksum kind : {Checksum::kCrc32, Checksum::kCrc32c}) {
      const Descriptor out = create(folder / "out");
      const std::vector<OutputRange> pieces = {
          {out.get(), "out", 0, 3, Literal{"abc"}, 1, kind},
          {out.get(), "out", 3, copied.size(), CopyFrom{&from, 0}, 1, kind},
          {out.get(), "out", 3 + copied.size(), made.size(), computed(made, 100), 1, kind},
          {out.get(), "out", all.size(), made.size(), computed(made, 1), 0, kind},
      };
      std::array<std::uint32_t, 3> sums{1, 2, 3};
      transfer(pieces, threads, {}, sums);
      const bool c = kind == Checksum::kCrc32c;
      CHECK(sums[0] == (c ? crc32c_plain(as_bytes(made)) : crc32_of(as_bytes(made))));
      CHECK(sums[1] == (c ? crc32c_plain(as_bytes(all)) : crc32_of(as_bytes(all))));
      CHECK(sums[2] == 0);
      CHECK((read_file(folder / "out") == all + made));
    }
  }
}

TEST_CASE("progress counts every byte once") {
  const TempFolder folder;
  const std::string made = pattern(1000);
  const Descriptor out = create(folder / "out");
  std::mutex mutex;
  std::vector<std::uint64_t> seen;
  transfer(
      {{out.get(), "out", 0, 400, computed(made, 64)}, {out.get(), "out", 400, 3, Literal{"abc"}}},
      3, [&](std::uint64_t done, std::uint64_t total) {
        const std::lock_guard lock(mutex);
        CHECK(total == 403);
        seen.push_back(done);
      });
  std::sort(seen.begin(), seen.end());
  CHECK(seen.size() == 8);
  CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
  CHECK(seen.back() == 403);
}

TEST_CASE("an error while computing comes out") {
  const TempFolder folder;
  const Descriptor out = create(folder / "out");
  const Computed bad{.fill =
                         [](std::uint64_t offset, MutableBytes) {
                           if (offset == 30) throw InputError("tensor", "has no value");
                         },
                     .chunk_bytes = 10};
  for (const int threads : {1, 4}) {
    CHECK(message_of([&] {
            transfer({{out.get(), "out", 0, 100, bad}}, threads, {});
          }) == "tensor: has no value");
  }
}

TEST_CASE("copying works where the kernel cannot, and in any steps") {
  const TempFolder folder;
  const std::string content = pattern(3'000'000);
  write_file(folder / "from", content);
  const InputFile from = InputFile::open(folder / "from");
  for (const int error : {EXDEV, ENOSYS, EOPNOTSUPP, EINVAL, EINTR, 0}) {
    const Descriptor to = create(folder / "to");
    int copies = 0;
    const test::Faults faults(
        [&](os::Call call, std::string_view, std::size_t) -> std::optional<os::Fault> {
          if (call != os::Call::kCopyRange) return std::nullopt;
          if (++copies == 1) return os::Fault{.count = 1000};  // some arrives, then it fails
          if (error == 0) return os::Fault{.count = 700'001};
          if (error == EINTR && copies > 3) return std::nullopt;
          return os::Fault{.error = error};
        });
    copy_bytes(from, 10, to.get(), 3, content.size() - 10, "to");
    CAPTURE(error);
    CHECK(read_file(folder / "to") == std::string(3, '\0') + content.substr(10));
    CHECK(copies >= 2);
  }
}

TEST_CASE("copying fails with the error of the system") {
  const TempFolder folder;
  write_file(folder / "from", "0123456789");
  const InputFile from = InputFile::open(folder / "from");
  const Descriptor to = create(folder / "to");
  const test::Faults faults(
      [&](os::Call, std::string_view, std::size_t) { return os::Fault{.error = ENOSPC}; });
  CHECK(message_of([&] { copy_bytes(from, 0, to.get(), 0, 10, "to"); }) ==
        "to: writing: No space left on device");
}

TEST_CASE("a source that shrinks while it is copied is named") {
  const TempFolder folder;
  write_file(folder / "from", "0123456789");
  const InputFile from = InputFile::open(folder / "from");
  write_file(folder / "from", "01234");
  const Descriptor to = create(folder / "to");
  CHECK(contains(message_of([&] { copy_bytes(from, 2, to.get(), 0, 8, "to"); }),
                 "from: ends at byte 5, was 10 bytes when opened"));
}

}  // namespace
}  // namespace masque::store
