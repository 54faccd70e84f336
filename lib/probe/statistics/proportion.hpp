// A share of right answers: its interval, and whether two shares differ.
#pragma once

#include <cmath>
#include <cstdint>

#include "probe/statistics/interval.hpp"

namespace masque::probe {

/// Wilson's score interval of level 95 % for the probability of which `right` of `n` is a sample.
/// Wilson 1927, doi:10.1080/01621459.1927.10502953. Of nothing it is [0, 1].
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

}  // namespace masque::probe
