#include "kernel/softmax/softmax_rows.hpp"

#include <algorithm>

#include "base/processor/vectorize.hpp"
#include "kernel/norm_rows.hpp"
#include "kernel/number/elementary.hpp"
#include "kernel/number/lanes.hpp"

namespace masque::kernel {
namespace {

constexpr float kLeast = -std::numeric_limits<float>::infinity();

/// x ← −∞ where the bit is not set.
void hide_loop(float* x, Index n, const std::uint64_t* bits) {
  for (Index first = 0; first < n; first += 64) {
    const std::uint64_t word = bits[first / 64];
    if (word == ~std::uint64_t{0}) continue;
    const Index count = std::min<Index>(64, n - first);
    for (Index j = 0; j < count; ++j) {
      const bool visible = ((word >> static_cast<std::uint64_t>(j)) & 1U) != 0;
      x[first + j] = elementary_detail::select(visible, x[first + j], kLeast);
    }
  }
}

/// From scores to weights; `most` is the largest score.
void softmax_row_loop(float* x, Index n, float most) {
  const Index whole = n / kLanes * kLanes;
  float sum[kLanes] = {};
  for (Index j = 0; j < whole; j += kLanes) {
    for (Index i = 0; i < kLanes; ++i) {
      x[j + i] = fast_exp_negative(x[j + i] - most);
      sum[i] += x[j + i];
    }
  }
  for (Index j = whole; j < n; ++j) {
    x[j] = fast_exp_negative(x[j] - most);
    sum[j - whole] += x[j];
  }
  const float factor = 1.0F / lane_sum(sum);
  for (Index j = 0; j < n; ++j) x[j] *= factor;
}

void softmax_row_backward_loop(const float* weights, const float* d_weights, Index n,
                               float* d_scores) {
  float sums[kLanes] = {};
  const Index whole = n / kLanes * kLanes;
  for (Index j = 0; j < whole; j += kLanes) {
    for (Index i = 0; i < kLanes; ++i) sums[i] += weights[j + i] * d_weights[j + i];
  }
  for (Index j = whole; j < n; ++j) sums[j - whole] += weights[j] * d_weights[j];
  const float sum = lane_sum(sums);
  for (Index j = 0; j < n; ++j) d_scores[j] += weights[j] * (d_weights[j] - sum);
}

}  // namespace

void softmax_row(float* x, Index n, const std::uint64_t* bits) {
  if (bits != nullptr) vectorized<hide_loop>(x, n, bits);
  const float most = largest_of_row(x, n, 1.0F);
  if (most == kLeast) {
    std::fill_n(x, n, 0.0F);
  } else {
    vectorized<softmax_row_loop>(x, n, most);
  }
}

void softmax_row_backward(const float* weights, const float* d_weights, Index n, float* d_scores) {
  vectorized<softmax_row_backward_loop>(weights, d_weights, n, d_scores);
}

}  // namespace masque::kernel
