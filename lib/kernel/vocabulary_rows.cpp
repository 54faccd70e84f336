#include "kernel/vocabulary_rows.hpp"

#include "base/vectorize.hpp"
#include "kernel/elementary.hpp"
#include "kernel/lanes.hpp"

namespace masque::kernel {

MASQUE_VECTORIZE
void track_largest(std::int32_t word, float bias, Index n, float* x, float* largest,
                   std::int32_t* place) {
  for (Index r = 0; r < n; ++r) {
    const float value = x[r] + bias;
    const std::int32_t mask = -static_cast<std::int32_t>(value > largest[r]);
    x[r] = value;
    largest[r] = value > largest[r] ? value : largest[r];
    place[r] = (word & mask) | (place[r] & ~mask);
  }
}

MASQUE_VECTORIZE
void exp_below(const float* largest, Index n, float* x, float* sum) {
  for (Index r = 0; r < n; ++r) {
    const float value = fast_exp_negative(x[r] - largest[r]);
    x[r] = value;
    sum[r] += value;
  }
}

MASQUE_VECTORIZE
void add_rescaled(const float* sum, const float* largest, const float* most, Index n,
                  double* total) {
  for (Index r = 0; r < n; ++r) {
    total[r] += static_cast<double>(sum[r] * fast_exp_negative(largest[r] - most[r]));
  }
}

MASQUE_VECTORIZE
void rescale_factors(const float* largest, const float* most, const float* share, Index n,
                     float* factor) {
  for (Index r = 0; r < n; ++r) factor[r] = fast_exp_negative(largest[r] - most[r]) * share[r];
}

MASQUE_VECTORIZE
void scale_columns(const float* factor, Index n, float* x) {
  for (Index r = 0; r < n; ++r) x[r] *= factor[r];
}

MASQUE_VECTORIZE
float sum_of_row(const float* x, Index n) {
  const Index whole = n / kLanes * kLanes;
  Lanes sum = {};
  Lanes part;
  for (Index j = 0; j < whole; j += kLanes) {
    load_lanes(x + j, part);
    sum += part;
  }
  load_lanes(x + whole, n - whole, part);
  sum += part;
  return lane_sum(sum);
}

}  // namespace masque::kernel
