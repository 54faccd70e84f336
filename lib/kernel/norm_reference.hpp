// The definition of the norms: one row at a time.
#pragma once

#include "kernel/norm.hpp"
#include "kernel/number/scalar.hpp"

namespace masque::kernel::reference {

/// The moments of a row that a norm needs.
template <class T>
struct RowMoments {
  T mean;     ///< mean of the row; 0 for RMS
  T inverse;  ///< 1 / √(mean square around `mean` + ε)
};

/// The moments of the `n` numbers of `x` for `norm`, with `epsilon` as ε.
template <class T>
RowMoments<T> row_moments(Norm norm, const T* x, Index n, double epsilon) {
  const T count = number<T>(static_cast<double>(n));
  T mean(0);
  if (norm == Norm::kLayer) {
    for (Index j = 0; j < n; ++j) mean += x[j];
    mean /= count;
  }
  T squares(0);
  for (Index j = 0; j < n; ++j) squares += (x[j] - mean) * (x[j] - mean);
  return {mean, T(1) / std::sqrt(squares / count + number<T>(epsilon))};
}

/// `y` = norm(x) ⊙ `weight` + `bias`, `n` elements each; nullptr: weight 1, bias 0. `norm` and
/// `epsilon` as in row_moments. y may be `x`.
template <class T>
void norm_row(Norm norm, const T* x, const T* weight, const T* bias, Index n, double epsilon,
              T* y) {
  const auto [mean, inverse] = row_moments(norm, x, n, epsilon);
  for (Index j = 0; j < n; ++j) {
    T value = (x[j] - mean) * inverse;
    if (weight != nullptr) value *= weight[j];
    if (bias != nullptr) value += bias[j];
    y[j] = value;
  }
}

/// The gradient of norm_row with the same `norm`, `weight`, `epsilon` and the `n` elements of `x`.
/// With h the normalised row and g = `d_y` ⊙ weight: dx = (g − mean(g) − h · mean(g ⊙ h)) ·
/// inverse; RMS lacks the term mean(g). Adds dx to `d_x`; `d_weight` += d_y ⊙ h and `d_bias` +=
/// d_y unless they are nullptr.
template <class T>
void norm_row_backward(Norm norm, const T* x, const T* weight, Index n, double epsilon,
                       const T* d_y, T* d_x, T* d_weight, T* d_bias) {
  const auto [mean, inverse] = row_moments(norm, x, n, epsilon);
  const T count = number<T>(static_cast<double>(n));
  T sum(0), along(0);
  for (Index j = 0; j < n; ++j) {
    const T h = (x[j] - mean) * inverse;
    const T g = weight != nullptr ? d_y[j] * weight[j] : d_y[j];
    sum += g;
    along += g * h;
    if (d_weight != nullptr) d_weight[j] += d_y[j] * h;
    if (d_bias != nullptr) d_bias[j] += d_y[j];
  }
  if (norm == Norm::kRms) sum = T(0);
  for (Index j = 0; j < n; ++j) {
    const T h = (x[j] - mean) * inverse;
    const T g = weight != nullptr ? d_y[j] * weight[j] : d_y[j];
    d_x[j] += (g - sum / count - h * (along / count)) * inverse;
  }
}

}  // namespace masque::kernel::reference
