#include "kernel/norm_rows.hpp"

#include "base/vectorize.hpp"
#include "kernel/lanes.hpp"

namespace masque::kernel {

namespace {

/// Mean (0 for RMS) and 1 / √(mean square around it + ε).
[[gnu::always_inline]] inline void fast_moments(Norm norm, const float* x, Index n, double epsilon,
                                                float& mean, float& inverse) {
  const Index whole = n / kLanes * kLanes;
  const auto count = static_cast<float>(n);
  mean = 0;
  if (norm == Norm::kLayer) {
    Lanes sum = {};
    Lanes part;
    for (Index j = 0; j < whole; j += kLanes) {
      load_lanes(x + j, part);
      sum += part;
    }
    load_lanes(x + whole, n - whole, part);
    sum += part;
    mean = lane_sum(sum) / count;
  }
  Lanes squares = {};
  Lanes part;
  for (Index j = 0; j < whole; j += kLanes) {
    load_lanes(x + j, part);
    part -= mean;
    squares += part * part;
  }
  for (Index j = whole; j < n; ++j) squares[j - whole] += (x[j] - mean) * (x[j] - mean);
  inverse = 1.0F / std::sqrt(lane_sum(squares) / count + static_cast<float>(epsilon));
}

/// out = d_y ⊙ weight; sum and along are Σ out and Σ out ⊙ h with h = (x − mean) · inverse.
[[gnu::always_inline]] inline void weighted(const float* x, const float* weight, const float* d_y,
                                            Index n, float mean, float inverse, float& sum,
                                            float& along) {
  float sums[kLanes] = {}, alongs[kLanes] = {};
  const Index whole = n / kLanes * kLanes;
  for (Index j = 0; j < whole; j += kLanes) {
    for (Index i = 0; i < kLanes; ++i) {
      const float g = weight != nullptr ? d_y[j + i] * weight[j + i] : d_y[j + i];
      sums[i] += g;
      alongs[i] += g * ((x[j + i] - mean) * inverse);
    }
  }
  for (Index j = whole; j < n; ++j) {
    const float g = weight != nullptr ? d_y[j] * weight[j] : d_y[j];
    sums[j - whole] += g;
    alongs[j - whole] += g * ((x[j] - mean) * inverse);
  }
  Lanes lanes;
  load_lanes(sums, lanes);
  sum = lane_sum(lanes);
  load_lanes(alongs, lanes);
  along = lane_sum(lanes);
}

}  // namespace

MASQUE_VECTORIZE
void norm_row(Norm norm, const float* x, const float* weight, const float* bias, Index n,
              double epsilon, float* y) {
  float mean;
  float inverse;
  fast_moments(norm, x, n, epsilon, mean, inverse);
  if (weight != nullptr && bias != nullptr) {
    for (Index j = 0; j < n; ++j) y[j] = (x[j] - mean) * inverse * weight[j] + bias[j];
  } else if (weight != nullptr) {
    for (Index j = 0; j < n; ++j) y[j] = (x[j] - mean) * inverse * weight[j];
  } else {
    for (Index j = 0; j < n; ++j) y[j] = (x[j] - mean) * inverse;
    for (Index j = 0; bias != nullptr && j < n; ++j) y[j] += bias[j];
  }
}

MASQUE_VECTORIZE
void norm_row_backward(Norm norm, const float* x, const float* weight, Index n, double epsilon,
                       const float* d_y, float* d_x, float* d_weight, float* d_bias) {
  float mean;
  float inverse;
  fast_moments(norm, x, n, epsilon, mean, inverse);
  float sum;
  float along;
  if (weight != nullptr) {
    weighted(x, weight, d_y, n, mean, inverse, sum, along);
  } else {
    weighted(x, nullptr, d_y, n, mean, inverse, sum, along);
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

MASQUE_VECTORIZE
void add_rows(const float* x, const float* y, Index n, float* sum) {
  for (Index j = 0; j < n; ++j) sum[j] = x[j] + y[j];
}

}  // namespace masque::kernel
