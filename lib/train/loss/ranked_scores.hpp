// How well a score separates two classes, over all thresholds.
#pragma once

#include <vector>

namespace masque::train {

/// Scores of the numbers of two classes.
struct RankedScores {
  std::vector<double> positive;  ///< of the class that should have the larger scores
  std::vector<double> negative;  ///< of the other class

  /// Whether neither class has a score.
  bool empty() const { return positive.empty() && negative.empty(); }
  /// Appends the scores of `other`.
  void add(const RankedScores& other);
  /// The area under the receiver operating characteristic: the share of pairs whose positive has
  /// the larger score, equal ones counted half. NaN without both classes, and for scores that are
  /// NaN. Time: of sorting.
  double area() const;
};

}  // namespace masque::train
