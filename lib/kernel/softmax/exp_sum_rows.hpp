// Parts of a log-sum-exp: Σ exp(x) = sum · exp(largest).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/types.hpp"
#include "kernel/number/scalar.hpp"

namespace masque::kernel {

/// A sum of exponentials: Σ exp(x) = sum · exp(largest). Of no numbers: sum is 0.
struct ExpSum {
  /// The largest exponent; −∞ if there is none.
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;  ///< Σ exp(x − largest)
};

/// The parts of Σ exp(scale · x) over `n` numbers of `x`, each multiplied by `scale`. For float:
/// exp in float, sums in 16 lanes of float.
template <class T>
ExpSum exp_sum(const T* x, Index n, double scale) {
  ExpSum result;
  for (Index j = 0; j < n; ++j) {
    const double value = scale * reference::real_part(x[j]);
    if (!(value <= result.largest)) result.largest = value;
  }
  for (Index j = 0; j < n; ++j) {
    result.sum += std::exp(scale * reference::real_part(x[j]) - result.largest);
  }
  return result;
}
ExpSum exp_sum(const float* x, Index n, double scale);

}  // namespace masque::kernel
