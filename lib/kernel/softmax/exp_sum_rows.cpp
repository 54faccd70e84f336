#include "kernel/softmax/exp_sum_rows.hpp"

#include "base/processor/vectorize.hpp"
#include "kernel/norm_rows.hpp"
#include "kernel/number/elementary.hpp"
#include "kernel/number/lanes.hpp"

namespace masque::kernel {

namespace {

/// Σ exp(factor · x − most).
float exp_sum_loop(const float* x, Index n, float factor, float most) {
  float sum[kLanes] = {};
  const Index whole = n / kLanes * kLanes;
  for (Index j = 0; j < whole; j += kLanes) {
    for (Index i = 0; i < kLanes; ++i) sum[i] += fast_exp_negative(factor * x[j + i] - most);
  }
  for (Index j = whole; j < n; ++j) sum[j - whole] += fast_exp_negative(factor * x[j] - most);
  return lane_sum(sum);
}

}  // namespace

ExpSum exp_sum(const float* x, Index n, double scale) {
  const auto factor = static_cast<float>(scale);
  const float most = largest_of_row(x, n, factor);
  return {static_cast<double>(most),
          static_cast<double>(vectorized<exp_sum_loop>(x, n, factor, most))};
}

}  // namespace masque::kernel
