// An interval for a share of right answers.
#pragma once

#include <cmath>
#include <cstdint>

#include "probe/statistics/bootstrap.hpp"

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
  return {std::fmax((middle - half) / scale, 0), std::fmin((middle + half) / scale, 1)};
}

}  // namespace masque::probe
