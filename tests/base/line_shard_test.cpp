// Shards of a file's lines.
#include "base/input/line_shard.hpp"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include <doctest/doctest.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/input/line_input.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

TEST_CASE("parts of a file are whole lines, and together the file") {
  const test::TempFolder folder;
  for (const std::string text : {"", "a\n", "a\nbb\n\nccc\nno end", "\n\n\n", "one"}) {
    test::write_file(folder / "text", text);
    for (const std::uint64_t count : std::vector<std::uint64_t>{1, 2, 3, 7}) {
      std::string all;
      std::uint64_t lines = 0;
      for (std::uint64_t i = 1; i <= count; ++i) {
        const InputFile file = InputFile::open(folder / "text");
        const LineSpan span = find_shard(file.descriptor(), "text", {i, count});
        const LineSpan same = find_shard(std::string_view(text), {i, count});
        CHECK(span.begin == same.begin);
        CHECK(span.end == same.end);
        CHECK(span.lines_before == same.lines_before);
        CHECK(span.lines_before == lines);
        LineInput input(file.descriptor(), "text", 100);
        input.cut({i, count});
        LineBatch batch;
        while (input.read(batch)) {
          CHECK(batch.first_line == lines + 1);
          lines +=
              static_cast<std::uint64_t>(std::count(batch.text.begin(), batch.text.end(), '\n'));
          all += batch.text;
        }
      }
      CHECK(all == text);
    }
  }
}

TEST_CASE("a shard is I/N with I from 1 to N") {
  const Shard shard = parse_shard("2/8");
  CHECK(shard.index == 2);
  CHECK(shard.count == 8);
  CHECK(parse_shard("1000000000/1000000000").index == 1'000'000'000);
  for (const char* bad :
       {"", "1", "0/2", "3/2", "1/", "a/b", "1/2/3", "1/1000000001", "-1/2", " 1/2"})
    CHECK_THROWS_AS(parse_shard(bad), UsageError);
}

TEST_CASE("a pipe and packed text have no shards") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  CHECK_THROWS_AS(find_shard(ends[0], "pipe", {1, 2}), UsageError);
  ::close(ends[0]);
  ::close(ends[1]);
  const test::TempFolder folder;
  test::write_file(folder / "packed", std::string("\x1F\x8B\x08\0\0\0\0\0\0\x03", 10));
  const InputFile packed = InputFile::open(folder / "packed");
  CHECK_THROWS_AS(find_shard(packed.descriptor(), "packed", {1, 2}), UsageError);
}

TEST_CASE("the digest of the whole does not depend on where a file stands") {
  const test::TempFolder folder;
  const std::string text = "a\nbb\n";
  test::write_file(folder / "text", text);
  const InputFile file = InputFile::open(folder / "text");
  REQUIRE(::lseek(file.descriptor(), 3, SEEK_SET) == 3);
  CHECK(digest_of_whole(file.descriptor(), "text") == xxh3_of(as_bytes(text)));
}

}  // namespace
}  // namespace masque
