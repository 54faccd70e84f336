#include "kernel/norm_rows.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/norm_rows.cpp"
#include "base/processor/simd.hpp"
#include "kernel/number/group-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace masque::kernel {
namespace HWY_NAMESPACE {

constexpr Index kWidth = kGroup<float>;

/// Mean (0 for RMS) and 1 / √(mean square around it + ε).
HWY_INLINE void moments_of(Norm norm, const float* x, Index n, double epsilon, float& mean,
                           float& inverse) {
  const Index whole = n / kWidth * kWidth;
  const auto count = static_cast<float>(n);
  mean = 0;
  if (norm == Norm::kLayer) {
    auto sum = zero_group<float>();
    for (Index j = 0; j < whole; j += kWidth) sum = sum + load_group(x + j);
    if (whole < n) sum = sum + load_group(x + whole, n - whole);
    mean = sum_of(sum) / count;
  }
  auto squares = zero_group<float>();
  const auto center = set_group(mean);
  for (Index j = 0; j < whole; j += kWidth) {
    const auto away = load_group(x + j) - center;
    squares = squares + away * away;
  }
  alignas(64) float sums[kWidth];
  store_group(squares, sums);
  for (Index j = whole; j < n; ++j) sums[j - whole] += (x[j] - mean) * (x[j] - mean);
  squares = load_group(sums);
  inverse = 1.0F / std::sqrt(sum_of(squares) / count + static_cast<float>(epsilon));
}

/// Σ g and Σ g ⊙ h with g = d_y ⊙ weight (or d_y) and h = (x − mean) · inverse.
template <bool kWeighted>
HWY_INLINE void weighted(const float* x, const float* weight, const float* d_y, Index n, float mean,
                         float inverse, float& sum, float& along) {
  const Index whole = n / kWidth * kWidth;
  const auto center = set_group(mean);
  const auto scale = set_group(inverse);
  auto sums = zero_group<float>();
  auto alongs = zero_group<float>();
  for (Index j = 0; j < whole; j += kWidth) {
    auto g = load_group(d_y + j);
    if constexpr (kWeighted) g = g * load_group(weight + j);
    sums = sums + g;
    alongs = alongs + g * ((load_group(x + j) - center) * scale);
  }
  alignas(64) float ends[2][kWidth];
  store_group(sums, ends[0]);
  store_group(alongs, ends[1]);
  for (Index j = whole; j < n; ++j) {
    const float g = kWeighted ? d_y[j] * weight[j] : d_y[j];
    ends[0][j - whole] += g;
    ends[1][j - whole] += g * ((x[j] - mean) * inverse);
  }
  sum = sum_of(load_group(ends[0]));
  along = sum_of(load_group(ends[1]));
}

void norm_row_loop(Norm norm, const float* x, const float* weight, const float* bias, Index n,
                   double epsilon, float* y) {
  float mean;
  float inverse;
  moments_of(norm, x, n, epsilon, mean, inverse);
  if (weight != nullptr && bias != nullptr) {
    for (Index j = 0; j < n; ++j) y[j] = (x[j] - mean) * inverse * weight[j] + bias[j];
  } else if (weight != nullptr) {
    for (Index j = 0; j < n; ++j) y[j] = (x[j] - mean) * inverse * weight[j];
  } else {
    for (Index j = 0; j < n; ++j) y[j] = (x[j] - mean) * inverse;
    for (Index j = 0; bias != nullptr && j < n; ++j) y[j] += bias[j];
  }
}

void norm_row_backward_loop(Norm norm, const float* x, const float* weight, Index n, double epsilon,
                            const float* d_y, float* d_x, float* d_weight, float* d_bias) {
  float mean;
  float inverse;
  moments_of(norm, x, n, epsilon, mean, inverse);
  float sum;
  float along;
  if (weight != nullptr) {
    weighted<true>(x, weight, d_y, n, mean, inverse, sum, along);
  } else {
    weighted<false>(x, nullptr, d_y, n, mean, inverse, sum, along);
  }
  const float shift = norm == Norm::kRms ? 0.0F : sum / static_cast<float>(n);
  const float slope = along / static_cast<float>(n);
  if (weight != nullptr) {
    for (Index j = 0; j < n; ++j) {
      const float h = (x[j] - mean) * inverse;
      d_x[j] += (d_y[j] * weight[j] - shift - h * slope) * inverse;
    }
  } else {
    for (Index j = 0; j < n; ++j) {
      const float h = (x[j] - mean) * inverse;
      d_x[j] += (d_y[j] - shift - h * slope) * inverse;
    }
  }
  for (Index j = 0; d_weight != nullptr && j < n; ++j) {
    d_weight[j] += d_y[j] * ((x[j] - mean) * inverse);
  }
  for (Index j = 0; d_bias != nullptr && j < n; ++j) d_bias[j] += d_y[j];
}

void add_rows_loop(const float* x, const float* y, Index n, float* sum) {
  for (Index j = 0; j < n; ++j) sum[j] = x[j] + y[j];
}

float sum_of_row_loop(const float* x, Index n) {
  const Index whole = n / kWidth * kWidth;
  auto sum = zero_group<float>();
  for (Index j = 0; j < whole; j += kWidth) sum = sum + load_group(x + j);
  if (whole < n) sum = sum + load_group(x + whole, n - whole);
  return sum_of(sum);
}

// A plain loop over lanes would stay a loop over single numbers: g++ makes no maximum of what may
// be NaN.
float largest_of_row_loop(const float* x, Index n, float factor) {
  const Index whole = n / kWidth * kWidth;
  const auto scale = set_group(factor);
  auto largest = set_group(-std::numeric_limits<float>::infinity());
  for (Index j = 0; j < whole; j += kWidth) {
    const auto value = scale * load_group(x + j);
    largest = if_greater(largest, value, largest, value);  // takes NaN
  }
  if (whole < n) {
    const auto value = scale * load_group(x + whole, n - whole);
    const std::uint64_t present = (std::uint64_t{1} << static_cast<unsigned>(n - whole)) - 1;
    largest = if_bit(present, if_greater(largest, value, largest, value), largest);
  }
  alignas(64) float lanes[kWidth];
  store_group(largest, lanes);
  float most = lanes[0];
  for (Index i = 1; i < kWidth; ++i) {
    if (!(lanes[i] <= most)) most = lanes[i];
  }
  return most;
}

}  // namespace HWY_NAMESPACE
}  // namespace masque::kernel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace masque::kernel {

HWY_EXPORT(norm_row_loop);
HWY_EXPORT(norm_row_backward_loop);
HWY_EXPORT(add_rows_loop);
HWY_EXPORT(sum_of_row_loop);
HWY_EXPORT(largest_of_row_loop);

void norm_row(Norm norm, const float* x, const float* weight, const float* bias, Index n,
              double epsilon, float* y) {
  HWY_DYNAMIC_DISPATCH(norm_row_loop)(norm, x, weight, bias, n, epsilon, y);
}
void norm_row_backward(Norm norm, const float* x, const float* weight, Index n, double epsilon,
                       const float* d_y, float* d_x, float* d_weight, float* d_bias) {
  HWY_DYNAMIC_DISPATCH(norm_row_backward_loop)
  (norm, x, weight, n, epsilon, d_y, d_x, d_weight, d_bias);
}
void add_rows(const float* x, const float* y, Index n, float* sum) {
  HWY_DYNAMIC_DISPATCH(add_rows_loop)(x, y, n, sum);
}
float sum_of_row(const float* x, Index n) { return HWY_DYNAMIC_DISPATCH(sum_of_row_loop)(x, n); }
float largest_of_row(const float* x, Index n, float factor) {
  return HWY_DYNAMIC_DISPATCH(largest_of_row_loop)(x, n, factor);
}

}  // namespace masque::kernel
#endif
