// A mean over tokens with a standard error over lines, whose tokens are not independent.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace masque::probe {

/// Σ values / Σ counts, where each line brings a sum of values and their count. The standard error
/// is that of a ratio (Cochran 1977, §6.5, without the finite population): √(n/(n−1) Σ (v − r c)²)
/// / Σ c.
struct RatioMean {
  std::uint64_t lines = 0;   ///< n, lines with a count above 0
  double values = 0;         ///< Σ v
  double counts = 0;         ///< Σ c
  double value_squares = 0,  ///< Σ v²
      products = 0,          ///< Σ v c
      count_squares = 0;     ///< Σ c²

  /// Adds a line with `count` numbers that add up to `value`; nothing if `count` is not above 0.
  void add(double value, double count) {
    if (count <= 0) return;
    ++lines;
    values += value;
    counts += count;
    value_squares += value * value;
    products += value * count;
    count_squares += count * count;
  }
  /// r = Σ v / Σ c; NaN of nothing.
  double mean() const {
    return counts > 0 ? values / counts : std::numeric_limits<double>::quiet_NaN();
  }
  /// The standard error of the mean; NaN of fewer than two lines.
  double standard_error() const {
    if (lines < 2) return std::numeric_limits<double>::quiet_NaN();
    const double r = mean();
    const double n = static_cast<double>(lines);
    const double squares = value_squares - 2 * r * products + r * r * count_squares;
    return std::sqrt(std::max(squares, 0.0) * n / (n - 1)) / counts;
  }
};

}  // namespace masque::probe
