#include "train/loss/ranked_scores.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace masque::train {

void RankedScores::add(const RankedScores& other) {
  positive.insert(positive.end(), other.positive.begin(), other.positive.end());
  negative.insert(negative.end(), other.negative.begin(), other.negative.end());
}

double RankedScores::area() const {
  const auto bad = [](const std::vector<double>& scores) {
    return scores.empty() ||
           std::ranges::any_of(scores, [](double score) { return std::isnan(score); });
  };
  if (bad(positive) || bad(negative)) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted = negative;
  std::ranges::sort(sorted);
  double pairs = 0;
  for (const double score : positive) {
    const auto [first, end] = std::ranges::equal_range(sorted, score);
    pairs += static_cast<double>(first - sorted.begin()) +
             0.5 * static_cast<double>(std::distance(first, end));
  }
  return pairs / static_cast<double>(positive.size()) / static_cast<double>(negative.size());
}

}  // namespace masque::train
