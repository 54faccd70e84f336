// Numbers in short: mean, spread and intervals of a few (e.g. one a seed), of sums that add up from
// parts, of means over tokens, of shares.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/types.hpp"

namespace masque::evaluate {

// An interval for an unknown number.

/// The level of the intervals that tools print: the share of repetitions of a whole measurement
/// whose interval contains the true value.
constexpr double kIntervalLevel = 0.95;

/// Both ends belong to it.
struct Interval {
  double low = 0;   ///< lower end
  double high = 0;  ///< upper end
};

// Quantiles of Student's t and of the normal distribution.

/// Returns the probability that |T| is at most `t` ≥ 0 for a T of Student's distribution with
/// `freedom` ≥ 1 degrees of freedom: the finite sums of Abramowitz and Stegun, 26.7.3 and 26.7.4.
/// Cost O(freedom).
double student_probability(double t, Index freedom);

/// Returns the t for which student_probability(t, `freedom`) is `level`, 0 < level < 1; beyond 2000
/// degrees of freedom from the first four terms of Abramowitz and Stegun, 26.7.5. To 10⁻¹⁰ of it
/// for levels up to 0.999. Cost O(freedom) up to 2000, then O(1).
double student_quantile(double level, Index freedom);

/// Returns the z for which a standard normal value is from −z to z with the probability `level`, 0
/// < level < 1. To 10⁻¹² of it.
double normal_quantile(double level);

// A few numbers in short.

/// A few numbers in short.
struct Summary {
  Index n = 0;      ///< how many
  double mean = 0;  ///< their mean
  double sd = 0;  ///< standard deviation of a sample: √(Σ (x − mean)² / (n − 1)); NaN for n = 1
  double min = 0;  ///< the smallest
  double max = 0;  ///< the largest
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

// Count, mean and spread of numbers, in parts that add up.

/// n, mean and sum of squares of numbers. Parts of a run add up to the whole but for rounding.
struct Moments {
  std::uint64_t n = 0;     ///< how many
  double mean = 0;         ///< their mean; 0 of none
  double sum_squares = 0;  ///< sum of the squared distances from the mean

  /// Adds the number `x`: Welford 1962.
  void add(double x) {
    ++n;
    const double before = x - mean;
    mean += before / static_cast<double>(n);
    sum_squares += before * (x - mean);
  }
  /// Adds the numbers of `other`: Chan, Golub and LeVeque 1979.
  void add(const Moments& other) {
    if (other.n == 0) return;
    const double all = static_cast<double>(n + other.n);
    const double between = other.mean - mean;
    sum_squares += other.sum_squares +
                   between * between * static_cast<double>(n) * static_cast<double>(other.n) / all;
    mean += between * static_cast<double>(other.n) / all;
    n += other.n;
  }
  /// Their sum, from the mean.
  double sum() const { return mean * static_cast<double>(n); }
};

// A mean over tokens with a standard error over lines, whose tokens are not independent.

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
  /// mean ± t standard errors, where t is student_quantile(`level`, n − 1), 0 < level < 1; nothing
  /// of fewer than two lines.
  std::optional<Interval> interval(double level = kIntervalLevel) const {
    if (lines < 2) return std::nullopt;
    const double half = student_quantile(level, static_cast<Index>(lines) - 1) * standard_error();
    return Interval{mean() - half, mean() + half};
  }
};

// A share of right answers: its interval, and whether two shares differ.

/// Wilson's score interval of level 95 % for the probability of which `right` of `n` is a sample.
/// Wilson 1927, doi:10.1080/01621459.1927.10502953. Without trials it is [0, 1].
inline Interval wilson_interval(std::uint64_t right, std::uint64_t n) {
  if (n == 0) return {0, 1};
  constexpr double kQuantile = 1.959963984540054;  // of the standard normal distribution at 97.5 %
  const double z2 = kQuantile * kQuantile;
  const auto all = static_cast<double>(n);
  const double p = static_cast<double>(right) / all;
  const double middle = p + z2 / (2 * all);
  const double half = kQuantile * std::sqrt(p * (1 - p) / all + z2 / (4 * all * all));
  const double scale = 1 + z2 / all;
  // Rounding must not hide that the ends are reached.
  return {right == 0 ? 0 : (middle - half) / scale, right == n ? 1 : (middle + half) / scale};
}

/// The two-sided sign test: the probability, if both sides of a fair coin are equally likely, of a
/// split of `heads` + `tails` throws that is at least as uneven. Of the pairs of answers that only
/// one of two models has right it is McNemar's exact test (McNemar 1947, doi:10.1007/BF02295996).
/// Time: O(the smaller number). 1 for no throws.
inline double sign_test(std::uint64_t heads, std::uint64_t tails) {
  const std::uint64_t fewer = heads < tails ? heads : tails;
  const double n = static_cast<double>(heads) + static_cast<double>(tails);
  const auto k = static_cast<double>(fewer);
  double tail = 0;
  if (n <= 1000) {
    double term = std::exp2(-n);
    for (std::uint64_t i = 0; i <= fewer; ++i) {
      tail += term;
      term *= (n - static_cast<double>(i)) / static_cast<double>(i + 1);
    }
    return std::fmin(2 * tail, 1);
  }
  // 2^-n is too small for a double: from the largest term downwards.
  double term = std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                         n * std::log(2.0));
  for (std::uint64_t i = fewer; term > tail * 1e-18; --i) {  // the term after i = 0 is 0
    tail += term;
    term *= static_cast<double>(i) / (n - static_cast<double>(i) + 1);
  }
  return std::fmin(2 * tail, 1);
}

}  // namespace masque::evaluate
