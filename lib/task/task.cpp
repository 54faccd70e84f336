#include "task/task.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::task {

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
  const double share = static_cast<double>(*std::max_element(counts.begin(), counts.end())) /
                       static_cast<double>(all);
  constexpr double kDigits = 1000;  // more would be noise
  return std::round(share * kDigits) / kDigits;
}

}  // namespace masque::task
