#include "task/task.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/named_arguments.hpp"

namespace masque::task {

namespace {

std::map<std::string, TaskRegistration::Make, std::less<>>& registry() {
  static std::map<std::string, TaskRegistration::Make, std::less<>> all;
  return all;
}

}  // namespace

Index Task::longest() const { return Index{1} << 20; }

double Task::exact_chance(Index /*length*/) const { return -1; }

void Task::check_length(Index length) const {
  if (length >= shortest() && length <= longest()) return;
  throw UsageError(
      fmt::format("{}: the length is {}, expected {} to {}", name_, length, shortest(), longest()));
}

TaskExample Task::example(Index length, const RandomStream& stream) const {
  check_length(length);
  Draw draw(stream);
  TaskExample example = make(length, draw);
  MASQUE_CHECK(std::ssize(example.ids) == tokens(length) &&
               example.targets.size() == example.ids.size());
  return example;
}

double Task::chance(Index length) const {
  check_length(length);
  if (const double exact = exact_chance(length); exact >= 0) return exact;
  constexpr Index kEnough = Index{1} << 16;
  std::vector<Index> counts(static_cast<std::size_t>(vocab_size()), 0);
  Index all = 0;
  for (std::uint64_t item = 0; all < kEnough; ++item) {
    for (const TokenId target : example(length, RandomStream(0, "task chance", item)).targets) {
      if (target == kNoTarget) continue;
      ++counts[static_cast<std::size_t>(target)];
      ++all;
    }
  }
  return static_cast<double>(*std::max_element(counts.begin(), counts.end())) /
         static_cast<double>(all);
}

TaskRegistration::TaskRegistration(std::string_view name, Make make) {
  MASQUE_CHECK(registry().emplace(name, make).second);
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  names.reserve(registry().size());
  for (const auto& [name, make] : registry()) names.push_back(name);
  return names;
}

std::string task_parameters(std::string_view name) {
  const auto at = registry().find(name);
  MASQUE_CHECK(at != registry().end());
  NamedArguments spelled(name);
  at->second(spelled);
  return spelled.standards();
}

std::unique_ptr<const Task> parse_task(std::string_view text) {
  NamedArguments spelled(text);
  const auto at = registry().find(spelled.name());
  if (at == registry().end()) {
    throw UsageError(fmt::format("there is no task '{}', only {}", escape(spelled.name()),
                                 fmt::join(task_names(), ", ")));
  }
  std::unique_ptr<Task> task = at->second(spelled);
  spelled.check_all_known();
  task->name_ = spelled.name();
  return task;
}

}  // namespace masque::task
