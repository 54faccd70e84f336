// Norms of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/norm_reference.hpp"

namespace masque::kernel {

/// `y` = norm(x) ⊙ `weight` + `bias`, `n` elements each; nullptr: weight 1, bias 0. `norm` chooses
/// the formula, `epsilon` is its ε. y may be `x`.
template <class T>
void norm_row(Norm norm, const T* x, const T* weight, const T* bias, Index n, double epsilon,
              T* y) {
  reference::norm_row(norm, x, weight, bias, n, epsilon, y);
}
void norm_row(Norm norm, const float* x, const float* weight, const float* bias, Index n,
              double epsilon, float* y);

/// From `d_y`, the gradient by y, adds to `d_x`, and to `d_weight` and `d_bias` unless they are
/// nullptr; `norm`, `weight` (or nullptr), `epsilon` and `x` are those of the forward pass. `n`
/// elements each. What is added to must not overlap anything else.
template <class T>
void norm_row_backward(Norm norm, const T* x, const T* weight, Index n, double epsilon,
                       const T* d_y, T* d_x, T* d_weight, T* d_bias) {
  reference::norm_row_backward(norm, x, weight, n, epsilon, d_y, d_x, d_weight, d_bias);
}
void norm_row_backward(Norm norm, const float* x, const float* weight, Index n, double epsilon,
                       const float* d_y, float* d_x, float* d_weight, float* d_bias);

/// `sum` = `x` + `y`, `n` elements each; sum may be either.
template <class T>
void add_rows(const T* x, const T* y, Index n, T* sum) {
  for (Index j = 0; j < n; ++j) sum[j] = x[j] + y[j];
}
void add_rows(const float* x, const float* y, Index n, float* sum);

/// Σ x over `n` numbers of `x`, in 16 lanes.
float sum_of_row(const float* x, Index n);

/// The largest `factor` · x of the `n` numbers of `x`; −∞ if n is 0. A NaN is taken, and lost again
/// to a number that comes 16 places later.
float largest_of_row(const float* x, Index n, float factor);

}  // namespace masque::kernel
