#include "kernel/softmax/vocabulary_rows.hpp"

#include "base/processor/vectorize.hpp"
#include "kernel/number/elementary.hpp"

namespace masque::kernel {

namespace {

void track_largest_loop(std::int32_t word, float bias, Index n, float* x, float* largest,
                        std::int32_t* place) {
  for (Index r = 0; r < n; ++r) {
    const float value = x[r] + bias;
    const std::int32_t mask = -static_cast<std::int32_t>(value > largest[r]);
    x[r] = value;
    largest[r] = value > largest[r] ? value : largest[r];
    place[r] = (word & mask) | (place[r] & ~mask);
  }
}

void exp_below_loop(const float* largest, Index n, float* x, float* sum) {
  for (Index r = 0; r < n; ++r) {
    const float value = fast_exp_negative(x[r] - largest[r]);
    x[r] = value;
    sum[r] += value;
  }
}

void add_rescaled_loop(const float* sum, const float* largest, const float* most, Index n,
                       double* total) {
  for (Index r = 0; r < n; ++r) {
    total[r] += static_cast<double>(sum[r] * fast_exp_negative(largest[r] - most[r]));
  }
}

void rescale_factors_loop(const float* largest, const float* most, const float* share, Index n,
                          float* factor) {
  for (Index r = 0; r < n; ++r) factor[r] = fast_exp_negative(largest[r] - most[r]) * share[r];
}

void scale_columns_loop(const float* factor, Index n, float* x) {
  for (Index r = 0; r < n; ++r) x[r] *= factor[r];
}

}  // namespace

void track_largest(std::int32_t word, float bias, Index n, float* x, float* largest,
                   std::int32_t* place) {
  vectorized<track_largest_loop>(word, bias, n, x, largest, place);
}

void exp_below(const float* largest, Index n, float* x, float* sum) {
  vectorized<exp_below_loop>(largest, n, x, sum);
}

void add_rescaled(const float* sum, const float* largest, const float* most, Index n,
                  double* total) {
  vectorized<add_rescaled_loop>(sum, largest, most, n, total);
}

void rescale_factors(const float* largest, const float* most, const float* share, Index n,
                     float* factor) {
  vectorized<rescale_factors_loop>(largest, most, share, n, factor);
}

void scale_columns(const float* factor, Index n, float* x) {
  vectorized<scale_columns_loop>(factor, n, x);
}

}  // namespace masque::kernel
