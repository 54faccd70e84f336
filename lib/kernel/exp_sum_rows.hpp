// Parts of a log-sum-exp: Σ exp(x) = sum · exp(largest).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/types.hpp"
#include "kernel/scalar.hpp"

namespace masque::kernel {

struct ExpSum {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
};

/// Of n numbers, each multiplied by `scale`.
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
