// What every task promises: names, vocabularies, layouts, lengths, determinism.
#include "task/task.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::test {
namespace {

using task::kNoTarget;
using task::Task;
using task::TaskExample;

RandomStream task_stream(std::uint64_t item) { return {11, "task test", item}; }

/// Lengths from the shortest on that the task has.
std::vector<Index> lengths(const Task& task) {
  std::vector<Index> all;
  for (Index more = 0; more < 20; ++more) all.push_back(task.shortest() + more);
  for (const Index length : {64, 129, 300}) {
    if (length <= task.longest()) all.push_back(length);
  }
  return all;
}

TEST_CASE("the list holds the tasks of the field and the fifteen of Delétang et al.") {
  const std::vector<std::string> names = task::task_names();
  const std::set<std::string> all(names.begin(), names.end());
  CHECK(std::is_sorted(names.begin(), names.end()));
  for (const char* name :
       {"copy", "reverse", "sort", "parity", "addition", "associative_recall", "induction",
        "needle", "position_identification", "even_token_prediction",
        // Delétang et al.
        "even_pairs", "modular_arithmetic_simple", "parity_check", "cycle_navigation",
        "stack_manipulation", "reverse_string", "modular_arithmetic", "solve_equation",
        "duplicate_string", "missing_duplicate", "odds_first", "binary_addition",
        "binary_multiplication", "compute_sqrt", "bucket_sort"}) {
    CHECK_MESSAGE(all.count(name) == 1, name);
  }
}

TEST_CASE("a task says its name, its source and a text for every token") {
  for (const std::string& name : task::task_names()) {
    CAPTURE(name);
    const auto task = task::parse_task(name);
    CHECK(task->name() == name);
    CHECK(task->info().find("length: ") != std::string_view::npos);
    CHECK(task->info().find("arXiv:") != std::string_view::npos);
    std::set<std::string> texts;
    for (TokenId id = 0; id < task->vocab_size(); ++id) {
      CHECK_FALSE(task->token_text(id).empty());
      CHECK(texts.insert(task->token_text(id)).second);
    }
    // What is printed as parameters is read again.
    const std::string parameters = task::task_parameters(name);
    const auto again = task::parse_task(fmt::format("{}({})", name, parameters));
    CHECK(again->example(20, task_stream(0)).ids == task->example(20, task_stream(0)).ids);
    CHECK(again->causal() == task->causal());
  }
}

TEST_CASE("ids and targets are of the vocabulary, in the layout and number that were promised") {
  for (const std::string& name : task::task_names()) {
    CAPTURE(name);
    const auto task = task::parse_task(name);
    for (const Index length : lengths(*task)) {
      CAPTURE(length);
      const TaskExample example =
          task->example(length, task_stream(static_cast<std::uint64_t>(length)));
      const std::size_t n = example.ids.size();
      REQUIRE(static_cast<Index>(n) == task->tokens(length));
      REQUIRE(example.targets.size() == n);
      bool any = false;
      for (std::size_t i = 0; i < n; ++i) {
        CHECK((example.ids[i] >= 0 && example.ids[i] < task->vocab_size()));
        const TokenId target = example.targets[i];
        if (target == kNoTarget) continue;
        any = true;
        CHECK((target >= 0 && target < task->vocab_size()));
        if (task->causal()) {
          REQUIRE(i + 1 < n);
          CHECK(example.ids[i + 1] == target);
        }
      }
      CHECK(any);
    }
  }
}

TEST_CASE("with blanks, no id at or after the first target says anything") {
  int with_blanks = 0;
  for (const std::string& name : task::task_names()) {
    if (task::task_parameters(name).find("blanks") == std::string::npos) continue;
    CAPTURE(name);
    ++with_blanks;
    const auto task = task::parse_task(name + "(blanks=true)");
    CHECK_FALSE(task->causal());
    CHECK(task::parse_task(name + "(blanks=false)")->causal());
    const TaskExample example = task->example(17, task_stream(1));
    const auto first = std::find_if(example.targets.begin(), example.targets.end(),
                                    [](TokenId target) { return target != kNoTarget; });
    for (auto i = first - example.targets.begin(); i < std::ssize(example.ids); ++i) {
      CHECK(task->token_text(example.ids[static_cast<std::size_t>(i)]) == "?");
    }
  }
  CHECK(with_blanks == 22);
}

TEST_CASE("an example is a function of task, length and stream") {
  for (const std::string& name : task::task_names()) {
    CAPTURE(name);
    const auto task = task::parse_task(name);
    std::set<std::vector<TokenId>> seen;
    for (std::uint64_t item = 0; item < 20; ++item) {
      const TaskExample a = task->example(40, task_stream(item));
      const TaskExample b = task::parse_task(name)->example(40, task_stream(item));
      CHECK(a.ids == b.ids);
      CHECK(a.targets == b.targets);
      seen.insert(a.ids);
    }
    CHECK(seen.size() == 20);
  }
}

TEST_CASE("the bits of an example do not change: files of results name tasks and seeds") {
  const auto task = task::parse_task("modular_arithmetic");
  std::string text;
  for (const TokenId id : task->example(12, RandomStream(1, "train", 5)).ids) {
    text += task->token_text(id);
  }
  CHECK(text == "((0--4)-(3))?");
}

TEST_CASE("lengths out of range and names that do not exist are refused") {
  CHECK_THROWS_AS(task::parse_task("copi"), UsageError);
  CHECK_THROWS_AS(task::parse_task("copy(size=3)"), UsageError);
  CHECK_THROWS_AS(task::parse_task("copy(alphabet=1)"), UsageError);
  CHECK_THROWS_AS(task::parse_task("addition(reversed=both)"), UsageError);
  for (const std::string& name : task::task_names()) {
    CAPTURE(name);
    const auto task = task::parse_task(name);
    REQUIRE(task->shortest() >= 1);
    CHECK_THROWS_AS(task->example(task->shortest() - 1, task_stream(0)), UsageError);
    CHECK_THROWS_AS(task->chance(task->longest() + 1), UsageError);
    CHECK_THROWS_AS(task->example(task->longest() + 1, task_stream(0)), UsageError);
  }
}

}  // namespace
}  // namespace masque::test
