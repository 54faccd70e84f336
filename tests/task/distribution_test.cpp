// What examples look like on average, and what guessing reaches.
#include <algorithm>
#include <cmath>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "task/checkers.hpp"

namespace masque::test {
namespace {

using task::kNoTarget;
using task::Task;
using task::TaskExample;

RandomStream distribution_stream(std::uint64_t item) { return {13, "distribution test", item}; }

/// Accuracy of the token that is right most often in examples `first` … `first` + n − 1, on the n
/// after these.
double guessed(const Task& task, Index length, std::uint64_t first, std::uint64_t n) {
  std::vector<double> seen(static_cast<std::size_t>(task.vocab_size()), 0);
  for (std::uint64_t i = first; i < first + n; ++i) {
    for (const TokenId target : task.example(length, distribution_stream(i)).targets) {
      if (target != kNoTarget) ++seen[static_cast<std::size_t>(target)];
    }
  }
  const auto guess =
      static_cast<TokenId>(std::max_element(seen.begin(), seen.end()) - seen.begin());
  double right = 0, all = 0;
  for (std::uint64_t i = first + n; i < first + 2 * n; ++i) {
    for (const TokenId target : task.example(length, distribution_stream(i)).targets) {
      if (target == kNoTarget) continue;
      right += target == guess ? 1 : 0;
      ++all;
    }
  }
  return right / all;
}

/// Task::chance counts the targets of examples until there are so many, where no formula is known.
constexpr double kCountedTargets = 65536;

double targets_of(const Task& task, Index length) {
  const auto targets = task.example(length, distribution_stream(0)).targets;
  return static_cast<double>(
      std::ranges::count_if(targets, [](TokenId t) { return t != kNoTarget; }));
}

TEST_CASE("the chance level is what a guesser reaches within 3 sigma, task by task") {
  constexpr std::uint64_t kExamples = 3000;
  for (const std::string& name : task::task_names()) {
    const auto task = task::parse_task(name);
    for (const Index length : {task->shortest(), Index{9}, Index{12}}) {
      CAPTURE(name);
      CAPTURE(length);
      const double chance = task->chance(length);
      // Targets of an example go together: errors are those of the examples. So are those of
      // chance levels that are counted.
      const double error = std::sqrt(
          chance * (1 - chance) * (1.0 / kExamples + targets_of(*task, length) / kCountedTargets));
      CHECK(std::abs(guessed(*task, length, 0, kExamples) - chance) <= 3 * error);
    }
  }
}

TEST_CASE("chance levels that are known") {
  const auto chance = [](const char* name, Index length) {
    return task::parse_task(name)->chance(length);
  };
  CHECK(chance("copy", 10) == 1.0 / 16);
  CHECK(chance("copy(alphabet=4)", 10) == 0.25);
  CHECK(chance("parity", 10) == 0.5);
  CHECK(chance("even_pairs", 1) == 1);
  CHECK(chance("position_identification", 128) == 1.0 / 128);  // kexue 9105: 1/n
  CHECK(chance("even_token_prediction", 128) == 0.5);
  CHECK(chance("bucket_sort", 30) == 0.2);
  CHECK(chance("needle", 30) == 0.1);
  CHECK(chance("cycle_navigation", 3) == doctest::Approx(7.0 / 27));  // walks that end at place 0
  CHECK(chance("cycle_navigation", 100) == doctest::Approx(0.2));
  // Counted, one target an example: the highest count of 3 or 5 that are as likely, within 3 sigma.
  const auto check_counted = [&](const char* name, Index length, double expected) {
    CAPTURE(name);
    const double sigma = std::sqrt(expected * (1 - expected) / kCountedTargets);
    CHECK(std::abs(chance(name, length) - expected) <= 3 * sigma);
  };
  // 0 · r = 0: of three factors' signs, products make 0 more frequent than 1/5.
  check_counted("modular_arithmetic_simple", 3, (2 * 0.2 + 0.36) / 3);
}

TEST_CASE("every token of a vocabulary occurs") {
  int examined = 0;
  for (const std::string& name : task::task_names()) {
    const auto task = task::parse_task(name);
    if (task->vocab_size() > 64) continue;
    CAPTURE(name);
    ++examined;
    std::set<TokenId> seen;
    for (std::uint64_t item = 0; item < 300; ++item) {
      const TaskExample example = task->example(31, distribution_stream(item));
      seen.insert(example.ids.begin(), example.ids.end());
      seen.insert(example.targets.begin(), example.targets.end());
    }
    seen.erase(kNoTarget);
    CHECK(std::ssize(seen) == task->vocab_size());
  }
  CHECK(examined == 22);
}

TEST_CASE("symbols of strings are uniform, and neighbours independent") {
  for (const char* name : {"copy(alphabet=4)", "sort(alphabet=4)", "induction(alphabet=4)",
                           "reverse_string(alphabet=4)"}) {
    CAPTURE(name);
    const auto task = task::parse_task(name);
    std::map<std::pair<std::string, std::string>, double> pairs;
    double all = 0;
    for (std::uint64_t item = 0; item < 2000; ++item) {
      const Words words = printed(*task, task->example(20, distribution_stream(item))).question;
      for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
        if (words[i] == "?" || words[i + 1] == "?") continue;
        ++pairs[{words[i], words[i + 1]}];
        ++all;
      }
    }
    CHECK(pairs.size() == 16);
    for (const auto& [pair, count] : pairs) {
      CHECK(std::abs(count - all / 16) < 5 * std::sqrt(all * 15 / 256));
    }
  }
}

/// Mean and standard error of f over examples.
template <class F>
void check_mean(const Task& task, Index length, double expected, F f) {
  double sum = 0, squares = 0;
  constexpr int kExamples = 4000;
  for (std::uint64_t item = 0; item < kExamples; ++item) {
    const double x = f(printed(task, task.example(length, distribution_stream(item))));
    sum += x;
    squares += x * x;
  }
  const double mean = sum / kExamples;
  const double error = std::sqrt((squares / kExamples - mean * mean) / kExamples);
  CHECK(error > 0);
  CHECK(std::abs(mean - expected) < 5 * error);
}

double place(const Words& words, const std::string& word) {
  return static_cast<double>(std::find(words.begin(), words.end(), word) - words.begin());
}

TEST_CASE("places and sizes are spread as the papers' code spreads them") {
  // Needle of 1 + 4 ids in 25: it begins at 0 … 20. Mark in 21 symbols: at 0 … 18.
  check_mean(*task::parse_task("needle"), 25, 10,
             [](const Printed& p) { return place(p.question, p.question.back()); });
  check_mean(*task::parse_task("induction"), 21, 9,
             [](const Printed& p) { return place(p.question, "?"); });
  // The first operand of 21 ids has 1 … 19 digits.
  check_mean(*task::parse_task("binary_addition"), 21, 10,
             [](const Printed& p) { return place(p.question, "+"); });
  check_mean(*task::parse_task("binary_multiplication"), 21, 10,
             [](const Printed& p) { return place(p.question, "*"); });
  check_mean(*task::parse_task("missing_duplicate"), 21, 9.5,
             [](const Printed& p) { return place(p.question, "#"); });
  // The stack of 21 ids begins with 1 … 20 bits; a third of the actions pops.
  check_mean(*task::parse_task("stack_manipulation"), 21, 10.5, [](const Printed& p) {
    return static_cast<double>(std::count_if(p.question.begin(), p.question.end(),
                                             [](const auto& w) { return w == "0" || w == "1"; }));
  });
  // (l ∘ r) of 9 ids: l has 1 … 5, r the rest: lengths 1 … 4 hold one residue, 5 two.
  check_mean(*task::parse_task("modular_arithmetic"), 9, (3 + 2 + 2 + 2 + 3) / 5.0,
             [](const Printed& p) {
               double residues = 0;
               for (const auto& w : p.question) residues += std::isdigit(w.front()) != 0 ? 1 : 0;
               return residues;
             });
}

}  // namespace
}  // namespace masque::test
