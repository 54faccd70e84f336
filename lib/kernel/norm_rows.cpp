#include "kernel/norm_rows.hpp"

#include "base/vectorize.hpp"
#include "kernel/lanes.hpp"

namespace masque::kernel {

MASQUE_VECTORIZE
void norm_row(Norm norm, const float* x, const float* weight, const float* bias, Index n,
              double epsilon, float* y) {
  const Index whole = n / kLanes * kLanes;
  const auto count = static_cast<float>(n);
  float mean = 0;
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
  const float inverse = 1.0F / std::sqrt(lane_sum(squares) / count + static_cast<float>(epsilon));
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
void add_rows(const float* x, const float* y, Index n, float* sum) {
  for (Index j = 0; j < n; ++j) sum[j] = x[j] + y[j];
}

}  // namespace masque::kernel
