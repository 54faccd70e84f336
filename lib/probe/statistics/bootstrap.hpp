// A few numbers, e.g. one a seed: their mean, spread, and an interval for the mean.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace masque::probe {

struct BootstrapRequest {
  double level = 0.95;  ///< share of the replicates inside of the interval; 0 < level < 1
  Index replicates = 10000;
  std::uint64_t seed = 1;
};

struct Interval {
  double low = 0;
  double high = 0;
};

/// The percentile interval of replicates, of which there is one at least: from their (1 − level) /
/// 2 quantile to the (1 + level) / 2 one, each interpolated between the two nearest order
/// statistics. NaN if one of them is NaN.
Interval percentile_interval(std::vector<double> replicates, double level);

struct Summary {
  Index n = 0;
  double mean = 0;
  double sd = 0;  ///< of a sample: √(Σ (x − mean)² / (n − 1)); NaN for n = 1
  double min = 0;
  double max = 0;
  /// Percentile bootstrap interval of the mean; none for n = 1 nor where a number is not finite.
  std::optional<Interval> interval;
};

/// Mean, spread and interval of at least one number. A replicate is the mean of n numbers drawn
/// with repetition; the interval is their percentile_interval(). Efron 1979,
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
