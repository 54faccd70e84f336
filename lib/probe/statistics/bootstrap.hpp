// A few numbers, e.g. one a seed: their mean, spread, and an interval for the mean.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace masque::probe {

/// How an interval is made.
struct BootstrapRequest {
  double level = 0.95;       ///< share of the replicates inside of the interval; 0 < level < 1
  Index replicates = 10000;  ///< draws, at least 1
  std::uint64_t seed = 1;    ///< of the draws
};

/// Both ends belong to it.
struct Interval {
  double low = 0;   ///< lower end
  double high = 0;  ///< upper end
};

/// The percentile interval of `replicates`, of which there is one at least: from their (1 −
/// `level`) / 2 quantile to the (1 + `level`) / 2 one, 0 < `level` < 1, each interpolated between
/// the two nearest order statistics. NaN if one of them is NaN.
Interval percentile_interval(std::vector<double> replicates, double level);

/// A few numbers in short.
struct Summary {
  Index n = 0;      ///< how many
  double mean = 0;  ///< their mean
  double sd = 0;    ///< of a sample: √(Σ (x − mean)² / (n − 1)); NaN for n = 1
  double min = 0;   ///< the smallest
  double max = 0;   ///< the largest
  /// Percentile bootstrap interval of the mean; none for n = 1 nor where a number is not finite.
  std::optional<Interval> interval;
};

/// Mean, spread and interval of `values`, at least one, as `request` says. A replicate is the mean
/// of n numbers drawn with repetition; the interval is their percentile_interval(). Efron 1979,
/// doi:10.1214/aos/1176344552.
///
/// With few numbers it is too short: of three, the spread of the replicates is √(2/3) of what it
/// should be, and none lies outside of the numbers themselves.
///
/// A number that is not finite makes mean and sd NaN, and min and max too if it is itself NaN.
/// A function of the values, their order and the request alone. Cost replicates · (n + log
/// replicates), memory one double a replicate. Thread-safe.
Summary summarise(std::span<const double> values, const BootstrapRequest& request);

}  // namespace masque::probe
