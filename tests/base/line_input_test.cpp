// Lines of a stream in pieces of any size, and work on them in order.
#include "base/input/line_input.hpp"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/thread/ordered_work.hpp"
#include "support/temp_folder.hpp"

namespace masque {
namespace {

/// What comes out of a pipe that is fed in pieces of `step` bytes.
std::string through_pipe(const std::string& text, std::size_t step, int threads,
                         std::uint64_t max_line) {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe(ends) == 0);
  std::jthread writer([&text, step, fd = ends[1]] {
    for (std::size_t i = 0; i < text.size(); i += step) {
      const std::string piece = text.substr(i, step);
      if (::write(fd, piece.data(), piece.size()) < 0) break;
    }
    ::close(fd);
  });
  std::string out;
  LineInput input(ends[0], "pipe", max_line);
  OrderedSteps<LineBatch> steps;
  steps.read = [&](LineBatch& batch) { return input.read(batch); };
  steps.ready = [&] { return input.ready(); };
  steps.work = [](LineBatch& batch, int) {
    batch.text.insert(0, std::to_string(batch.first_line) + ":");
  };
  steps.write = [&](LineBatch& batch) { out += batch.text.substr(batch.text.find(':') + 1); };
  std::string message;
  try {
    ordered_work(threads, steps);
  } catch (const InputError& error) {
    message = std::string("!") + error.what();
  }
  char rest[4096];
  while (::read(ends[0], rest, sizeof rest) > 0) continue;  // the writer ends
  ::close(ends[0]);
  return out + message;
}

TEST_CASE("lines come whole and in order, whatever the pieces") {
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += std::string(static_cast<std::size_t>(i % 97), 'x') + std::to_string(i) + "\n";
  text += "no end";
  for (const std::size_t step : {std::size_t{1021}, std::size_t{40000}})
    for (const int threads : {1, 3}) CHECK(through_pipe(text, step, threads, 1 << 20) == text);
  CHECK(through_pipe("a\nb\n", 1, 2, 10) == "a\nb\n");
  CHECK(through_pipe("", 1, 2, 10).empty());
}

TEST_CASE("a line that is too long is named, after the good ones") {
  for (const int threads : {1, 2}) {
    const std::string long_line(500000, 'y');
    CHECK(through_pipe("a\nbb\n" + long_line + "\nc\n", 70000, threads, 1000) ==
          "a\nbb\n!pipe: line 3: more than 1000 bytes, expected fewer (max_line)");
    CHECK(through_pipe("0123456789\n01234567890\nc\n", 100, threads, 10) ==
          "0123456789\n!pipe: line 2: more than 10 bytes, expected fewer (max_line)");
  }
}

TEST_CASE("lines that are too long are left out where that is asked for, and named") {
  const test::TempFolder folder;
  const auto read = [&](const std::string& text) {
    test::write_file(folder / "text", text);
    const InputStream stream(folder / "text");
    LineInput input(stream.descriptor(), "text", 10);
    std::string out;
    input.leave_out_long([&](std::uint64_t line, const std::string& problem) {
      CHECK(problem.starts_with("more than 10 bytes, expected fewer ("));
      out += "-" + std::to_string(line) + " ";
    });
    for (LineBatch batch; input.read(batch);) {
      out += std::to_string(batch.first_line) + ":" + batch.text;
    }
    return out;
  };
  const std::string far(700000, 'y');
  CHECK(read("a\n01234567890\nc\nd") == "1:a\n-2 3:c\n4:d");
  CHECK(read("01234567890\n01234567891\nc\n") == "-1 -2 3:c\n");
  CHECK(read("a\n" + far + "\nc\nd\n" + far) == "1:a\n-2 3:c\nd\n-5 ");
  CHECK(read(far + "\n\n") == "-1 2:\n");
  CHECK(read("01234567890") == "-1 ");
  CHECK(read("0123456789\n") == "1:0123456789\n");
}

namespace {

/// Numbers 0 … 99 through `work`; `out` ← those that were written.
void work_on_numbers(int threads, const std::function<void(int)>& work, std::string& out) {
  int next = 0;
  OrderedSteps<int> steps;
  steps.read = [&](int& item) {
    item = next++;
    return item < 100;
  };
  steps.work = [&](int& item, int) { work(item); };
  steps.write = [&](int& item) { out += std::to_string(item) + " "; };
  ordered_work(threads, steps);
}

}  // namespace

TEST_CASE("an error of the work ends the stream after its item, for any number of threads") {
  const auto work = [](int item) {
    if (item >= 7) throw InputError("item", std::to_string(item));
  };
  for (const int threads : {1, 2, 5}) {
    std::string out;
    CHECK_THROWS_WITH_AS(work_on_numbers(threads, work, out), "item: 7", InputError);
    CHECK(out == "0 1 2 3 4 5 6 7 ");
  }
}

TEST_CASE("an item that there was no memory for is not written: it may be half done") {
  const auto work = [](int item) {
    if (item == 7) throw std::bad_alloc();
  };
  for (const int threads : {1, 2, 5}) {
    std::string out;
    CHECK_THROWS_AS(work_on_numbers(threads, work, out), std::bad_alloc);
    CHECK(out == "0 1 2 3 4 5 6 ");
  }
}

}  // namespace
}  // namespace masque
