// Count, mean and spread of numbers, in parts that add up.
#pragma once

#include <cstdint>

namespace masque::probe {

/// n, mean and sum of squares of numbers. Parts of a run add up to the whole but for rounding.
struct Moments {
  std::uint64_t n = 0;     ///< how many
  double mean = 0;         ///< their mean; 0 of none
  double sum_squares = 0;  ///< of the distances from the mean

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

}  // namespace masque::probe
