// The answers of every task, computed a second time.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "task/arithmetic.hpp"
#include "task/checkers.hpp"

namespace masque::test {
namespace {

using task::kNoTarget;
using task::TaskExample;

/// Tasks that are no question with an answer after it; their checks are below.
const std::set<std::string> kOthers = {"associative_recall", "even_token_prediction",
                                       "position_identification"};

RandomStream stream(std::uint64_t item) { return {7, "answer test", item}; }

TEST_CASE("every answer of every question task is right, in both layouts") {
  for (const std::string& name : task::task_names()) {
    CAPTURE(name);
    if (kOthers.count(name) == 1) continue;
    REQUIRE(checkers().count(name) == 1);
    const auto& right = checkers().at(name);
    const auto causal = task::parse_task(name + "(blanks=false)");
    const auto blanks = task::parse_task(name + "(blanks=true)");
    for (Index step = 0; step < 60; ++step) {
      // Every length from the shortest on, then some long ones.
      const Index length = causal->shortest() + (step < 50 ? step : 8 * step);
      const auto item = static_cast<std::uint64_t>(step);
      const Printed printed_causal = printed(*causal, causal->example(length, stream(item)));
      const Printed printed_blanks = printed(*blanks, blanks->example(length, stream(item)));
      INFO(fmt::format("{} ? {}", fmt::join(printed_causal.question, " "),
                       fmt::join(printed_causal.answer, " ")));
      CHECK(right(printed_causal.question, printed_causal.answer));
      CHECK(printed_blanks.question == printed_causal.question);
      CHECK(printed_blanks.answer == printed_causal.answer);
      Words wrong = printed_causal.answer;
      wrong.front() = wrong.front() == "0" ? "1" : "0";
      CHECK_FALSE(right(printed_causal.question, wrong));
    }
  }
}

TEST_CASE("binary arithmetic: the examples of Delétang et al. and numbers beyond 64 bits") {
  using task::Bits;
  CHECK(task::add({0, 0, 1}, {0, 1, 1, 0, 1}) == Bits{0, 1, 0, 1, 1});  // 4 + 22
  CHECK(task::multiply({1, 0, 0, 1}, {0, 0, 0, 0, 0, 1}) ==             // 9 · 32
        Bits{0, 0, 0, 0, 0, 1, 0, 0, 1});
  CHECK(task::square_root({1, 0, 1, 0, 0, 1}) == Bits{0, 1, 1});  // ⌊√37⌋ = 6
  CHECK(task::square_root({1, 1, 1}) == Bits{0, 1});              // ⌊√7⌋ = 2
  CHECK(task::add({}, {}).empty());
  // (2^100 − 1)² = 2^200 − 2^101 + 1, and its root again; one less has the root below.
  const Bits ones(100, 1);
  Bits square(200, 0);
  square[0] = 1;
  std::fill(square.begin() + 101, square.end(), 1);
  CHECK(task::multiply(ones, ones) == square);
  CHECK(task::square_root(square) == ones);
  square[0] = 0;
  Bits below = ones;
  below[0] = 0;
  CHECK(task::square_root(square) == below);
}

TEST_CASE("parity with steps is the parity after every bit") {
  const auto steps = task::parse_task("parity(steps=true)");
  for (std::uint64_t item = 0; item < 20; ++item) {
    const Printed p = printed(*steps, steps->example(13, stream(item)));
    REQUIRE(p.answer.size() == 13);
    for (std::size_t i = 0; i < 13; ++i) {
      const auto ones = std::count(p.question.begin(),
                                   p.question.begin() + static_cast<std::ptrdiff_t>(i) + 1, "1");
      CHECK(p.answer[i] == std::to_string(ones % 2));
    }
  }
}

TEST_CASE("addition: digits of the sum, or of all numbers, from the smallest on, and other bases") {
  const auto plain = task::parse_task("addition");
  const auto answer = task::parse_task("addition(reversed=answer)");
  const auto all = task::parse_task("addition(reversed=all)");
  const auto reversed = [](Words words) {
    std::reverse(words.begin(), words.end());
    return words;
  };
  for (std::uint64_t item = 0; item < 20; ++item) {
    const Printed p = printed(*plain, plain->example(7, stream(item)));
    const Printed q = printed(*answer, answer->example(7, stream(item)));
    const Printed r = printed(*all, all->example(7, stream(item)));
    CHECK(q.question == p.question);
    CHECK(q.answer == reversed(p.answer));
    CHECK(r.answer == q.answer);
    CHECK(Words(r.question.begin(), r.question.begin() + 7) ==
          reversed(Words(p.question.begin(), p.question.begin() + 7)));
    CHECK(Words(r.question.end() - 7, r.question.end()) ==
          reversed(Words(p.question.end() - 7, p.question.end())));
  }
  const auto hex = task::parse_task("addition(base=16)");
  const Printed p = printed(*hex, hex->example(12, stream(0)));
  std::uint64_t a = 0, b = 0, sum = 0;
  for (std::size_t i = 0; i < 12; ++i) a = 16 * a + std::stoull(p.question[i]);
  for (std::size_t i = 13; i < 25; ++i) b = 16 * b + std::stoull(p.question[i]);
  for (const std::string& digit : p.answer) sum = 16 * sum + std::stoull(digit);
  CHECK(a + b == sum);
}

TEST_CASE("needle: several names, one number each, all of them in the haystack") {
  const auto task = task::parse_task("needle(needles=3, digits=2, alphabet=4)");
  std::set<std::string> queried;
  for (std::uint64_t item = 0; item < 60; ++item) {
    const Printed p = printed(*task, task->example(9 + static_cast<Index>(item), stream(item)));
    REQUIRE(p.answer.size() == 2);
    for (const char* name : {"N0", "N1", "N2"}) {
      const auto at = std::find(p.question.begin(), p.question.end() - 1, name);
      REQUIRE(p.question.end() - at > 3);
      if (p.question.back() == name) CHECK(p.answer == Words(at + 1, at + 3));
    }
    queried.insert(p.question.back());
  }
  CHECK(queried.size() == 3);
}

TEST_CASE("associative recall: no key twice, every query has the value of its key") {
  for (const Index queries : {0, 1, 4}) {
    const auto task =
        task::parse_task(fmt::format("associative_recall(keys=20, values=5, queries={})", queries));
    for (Index length = 1; length <= 20; ++length) {
      const TaskExample e = task->example(length, stream(static_cast<std::uint64_t>(length)));
      std::map<TokenId, TokenId> value;
      std::set<TokenId> queried;
      for (std::size_t i = 0; i < e.ids.size(); i += 2) {
        CHECK(e.ids[i] < 20);
        CHECK(e.targets[i + 1] == kNoTarget);
        if (i < 2 * static_cast<std::size_t>(length)) {
          CHECK(value.emplace(e.ids[i], e.ids[i + 1]).second);
          CHECK(e.targets[i] == kNoTarget);
        } else {
          CHECK(queried.insert(e.ids[i]).second);
          CHECK(e.targets[i] == value.at(e.ids[i]));
        }
      }
      CHECK(std::ssize(queried) == (queries == 0 ? length : std::min(queries, length)));
    }
  }
}

TEST_CASE("positions, even places, and the ends around them") {
  const auto position = task::parse_task("position_identification");
  const auto even = task::parse_task("even_token_prediction");
  for (const Index length : {1, 2, 7, 128}) {
    const TaskExample p = position->example(length, stream(1));
    const TaskExample e = even->example(length, stream(1));
    const auto n = static_cast<std::size_t>(length);
    for (std::size_t i = 0; i < n; ++i) {
      CHECK(position->token_text(p.targets[i]) == fmt::format("p{}", i + 1));
      CHECK(p.ids[i] < 980);
      if (i < n / 2) CHECK(e.targets[i] == e.ids[2 * i + 1]);
      if (i >= n / 2) CHECK(even->token_text(e.targets[i]) == "-");
    }
    for (const char* name : {"position_identification", "even_token_prediction"}) {
      const auto bare = task::parse_task(name);
      const auto ends = task::parse_task(fmt::format("{}(ends=true)", name));
      const TaskExample a = bare->example(length, stream(2));
      const TaskExample b = ends->example(length, stream(2));
      REQUIRE(b.ids.size() == n + 2);
      CHECK(ends->token_text(b.ids.front()) == "[CLS]");
      CHECK(ends->token_text(b.ids.back()) == "[SEP]");
      CHECK(b.targets.front() == kNoTarget);
      CHECK(b.targets.back() == kNoTarget);
      CHECK(std::equal(a.ids.begin(), a.ids.end(), b.ids.begin() + 1));
      CHECK(std::equal(a.targets.begin(), a.targets.end(), b.targets.begin() + 1));
    }
  }
  const auto zeros = task::parse_task("position_identification(alphabet=1)");
  CHECK(zeros->example(9, stream(3)).ids == std::vector<TokenId>(9, 0));
}

}  // namespace
}  // namespace masque::test
