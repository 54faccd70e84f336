// The loop of filters: pieces, order, errors.
#include "base/input/line_filter.hpp"

#include <atomic>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/string/split.hpp"
#include "support/message.hpp"
#include "support/temp_folder.hpp"

namespace masque::test {
namespace {

/// Lines of uneven lengths, some empty, the last one without an end.
std::string sample(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; text.size() < bytes; ++i) {
    text += std::to_string(i) + std::string(i * i % 97, 'x') + (i % 7 == 0 ? "\n\n" : "\n");
  }
  return text + "end";
}

TEST_CASE("any number of threads gives the same output and line numbers") {
  const TempFolder folder;
  const std::string text = sample(3'000'000);
  write_file(folder / "in", text);
  std::string expected;
  std::uint64_t lines = 0;
  for_each_line(text, [&](std::string_view line) {
    expected += std::to_string(lines++ + 5) + ":" + std::string(line) + "\n";
  });
  for (const int threads : {1, 2, 5}) {
    std::string out;
    const std::uint64_t count = filter_lines(
        folder / "in", {.threads = threads,
                        .first_line = 5,
                        .work =
                            [](const LinePiece& piece, std::string& made) {
                              std::uint64_t number = piece.first_line;
                              for_each_line(piece.text, [&](std::string_view line) {
                                made += std::to_string(number++) + ":" + std::string(line) + "\n";
                              });
                            },
                        .sink = [&](std::string_view piece) { out += piece; }});
    CHECK(count == lines);
    CHECK(out == expected);
  }
}

TEST_CASE("an empty stream has no lines") {
  const TempFolder folder;
  write_file(folder / "in", "");
  CHECK(filter_lines(folder / "in", {.work = [](const LinePiece&, std::string&) { FAIL("called"); },
                                     .sink = [](std::string_view) {}}) == 0);
}

TEST_CASE("what comes before an error is handed on first") {
  const TempFolder folder;
  write_file(folder / "in", sample(2'000'000));
  std::string out;
  CHECK(message_of<InputError>([&] {
          filter_lines(folder / "in", {.threads = 2,
                                       .work =
                                           [](const LinePiece& piece, std::string& made) {
                                             made = std::to_string(piece.first_line) + "\n";
                                             if (piece.first_line > 9000) {
                                               throw InputError("late");
                                             }
                                           },
                                       .sink = [&](std::string_view piece) { out += piece; }});
        }) == "late");
  CHECK(out.starts_with("0\n"));
  CHECK(out.size() > 4);
}

TEST_CASE("a line that is too long is named, after the output of those before") {
  const TempFolder folder;
  write_file(folder / "in", "a\nb\n" + std::string(2'000'000, 'x') + "\n");
  std::string out;
  const LineFilter filter{
      .max_line = 1'000'000,
      .work = [](const LinePiece& piece, std::string& made) { made = piece.text; },
      .sink = [&](std::string_view piece) { out += piece; }};
  CHECK(message_of<InputError>([&] { filter_lines(folder / "in", filter); }) ==
        (folder / "in") + ": line 3: more than 1000000 bytes, expected fewer (max_line)");
  CHECK(out == "a\nb\n");
  CHECK(message_of<InputError>([&] {
          filter_lines(folder / "none", filter);
        }).ends_with("No such file or directory"));
  CHECK_THROWS_AS(filter_lines(folder.path(), filter), InputError);
}

TEST_CASE("a line that is too long is found among others in a piece, too") {
  const TempFolder folder;
  for (const int threads : {1, 3}) {
    std::string out;
    const LineFilter filter{
        .threads = threads,
        .max_line = 4,
        .work = [](const LinePiece& piece, std::string& made) { made = piece.text; },
        .sink = [&](std::string_view piece) { out += piece; }};
    write_file(folder / "in", "four\n\n12345\nb\n");
    CHECK(message_of<InputError>([&] { filter_lines(folder / "in", filter); }) ==
          (folder / "in") + ": line 3: more than 4 bytes, expected fewer (max_line)");
    CHECK(out == "four\n\n");
    out.clear();
    write_file(folder / "in", "12345");
    CHECK_THROWS_AS(filter_lines(folder / "in", filter), InputError);
    CHECK(out.empty());
    write_file(folder / "in", "four\nfour");
    CHECK(filter_lines(folder / "in", filter) == 2);
    CHECK(out == "four\nfour");
  }
}

TEST_CASE("shards together are the whole, with its line numbers") {
  const TempFolder folder;
  for (const std::size_t bytes : {0UL, 5UL, 1000UL, 900'000UL}) {
    const std::string text = bytes == 0 ? "" : sample(bytes);
    write_file(folder / "in", text);
    const auto run = [&](std::optional<Shard> shard) {
      std::string out;
      filter_lines(folder / "in", {.shard = shard,
                                   .work =
                                       [](const LinePiece& piece, std::string& made) {
                                         std::uint64_t number = piece.first_line;
                                         for_each_line(piece.text, [&](std::string_view line) {
                                           made += std::to_string(number++) + std::string(line);
                                         });
                                       },
                                   .sink = [&](std::string_view piece) { out += piece; }});
      return out;
    };
    const std::string whole = run(std::nullopt);
    for (const std::uint64_t count : {1UL, 2UL, 3UL, 7UL}) {
      std::string joined;
      for (std::uint64_t i = 1; i <= count; ++i) joined += run(Shard{i, count});
      CHECK(joined == whole);
    }
  }
}

}  // namespace
}  // namespace masque::test
