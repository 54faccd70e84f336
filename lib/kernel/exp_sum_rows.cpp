#include "kernel/exp_sum_rows.hpp"

#include "base/vectorize.hpp"
#include "kernel/elementary.hpp"
#include "kernel/lanes.hpp"

namespace masque::kernel {

namespace {

ExpSum exp_sum_loop(const float* x, Index n, double scale) {
  const auto factor = static_cast<float>(scale);
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  float largest[kLanes], sum[kLanes] = {};
  std::fill_n(largest, kLanes, kLeast);
  const Index whole = n / kLanes * kLanes;
  for (Index j = 0; j < whole; j += kLanes) {
    for (Index i = 0; i < kLanes; ++i) {
      const float value = factor * x[j + i];
      largest[i] = value <= largest[i] ? largest[i] : value;  // takes NaN
    }
  }
  for (Index j = whole; j < n; ++j) {
    const float value = factor * x[j];
    if (!(value <= largest[j - whole])) largest[j - whole] = value;
  }
  float most = largest[0];
  for (Index i = 1; i < kLanes; ++i) {
    if (!(largest[i] <= most)) most = largest[i];
  }
  for (Index j = 0; j < whole; j += kLanes) {
    for (Index i = 0; i < kLanes; ++i) sum[i] += fast_exp_negative(factor * x[j + i] - most);
  }
  for (Index j = whole; j < n; ++j) sum[j - whole] += fast_exp_negative(factor * x[j] - most);
  return {static_cast<double>(most), static_cast<double>(lane_sum(sum))};
}

}  // namespace

ExpSum exp_sum(const float* x, Index n, double scale) {
  return vectorized<exp_sum_loop>(x, n, scale);
}

}  // namespace masque::kernel
