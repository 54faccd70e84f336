#include "text/truncation.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::text {

namespace {

/// Lengths of a pair after cutting the longer one first.
std::pair<std::size_t, std::size_t> longest_first(std::size_t a, std::size_t b, std::size_t most) {
  std::size_t n1 = std::min(a, b);
  std::size_t n2 = n1 > most ? n1 : std::max(n1, most - n1);
  if (n1 + n2 > most) {
    n1 = most / 2;
    n2 = n1 + most % 2;
  }
  return a > b ? std::pair{n2, n1} : std::pair{n1, n2};
}

}  // namespace

void truncate(Encoding& first, Encoding* second, const Truncation& truncation) {
  const std::size_t most = truncation.max_length;
  const std::size_t total = first.size() + (second == nullptr ? 0 : second->size());
  if (total <= most) return;
  if (most == 0) {
    first.truncate(0, truncation.from_left);
    if (second != nullptr) second->truncate(0, truncation.from_left);
    return;
  }
  if (truncation.strategy == TruncationStrategy::kLongestFirst) {
    if (second == nullptr) {
      first.truncate(most, truncation.from_left);
      return;
    }
    const auto [n1, n2] = longest_first(first.size(), second->size(), most);
    first.truncate(n1, truncation.from_left);
    second->truncate(n2, truncation.from_left);
    return;
  }
  const bool cut_first = truncation.strategy == TruncationStrategy::kOnlyFirst;
  Encoding* target = cut_first ? &first : second;
  if (target == nullptr) throw UsageError("truncation: one text, expected a second one to cut");
  const std::size_t excess = total - most;
  if (target->size() <= excess) {
    throw InputError(
        fmt::format("truncation: the {} text has {} tokens, expected more than {} to cut",
                    cut_first ? "first" : "second", target->size(), excess));
  }
  target->truncate(target->size() - excess, truncation.from_left);
}

}  // namespace masque::text
