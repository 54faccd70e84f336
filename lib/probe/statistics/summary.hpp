// A few numbers, e.g. one a seed: their mean, spread, and an interval for the mean.
#pragma once

#include <optional>
#include <span>

#include "base/types.hpp"
#include "probe/statistics/interval.hpp"

namespace masque::probe {

/// A few numbers in short.
struct Summary {
  Index n = 0;      ///< how many
  double mean = 0;  ///< their mean
  double sd = 0;    ///< of a sample: √(Σ (x − mean)² / (n − 1)); NaN for n = 1
  double min = 0;   ///< the smallest
  double max = 0;   ///< the largest
  /// Student's interval for the mean; none for n = 1 nor where a number is not finite.
  std::optional<Interval> interval;
};

/// Mean, spread and interval of `values`, at least one. The interval is mean ± t sd / √n, where t
/// is student_quantile(`level`, n − 1), 0 < level < 1 (Student 1908, doi:10.1093/biomet/6.1.1). It
/// contains the mean of the distribution with the probability `level` if the values are independent
/// and normal, for any n from 2 on.
///
/// A number that is not finite makes mean and sd NaN, and min and max too if it is itself NaN. A
/// function of the values and their order. Cost O(n). Thread-safe.
Summary summarise(std::span<const double> values, double level = kIntervalLevel);

}  // namespace masque::probe
