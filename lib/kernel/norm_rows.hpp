// Norms of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/normalize_reference.hpp"

namespace masque::kernel {

template <class T>
void norm_row(Norm norm, const T* x, const T* weight, const T* bias, Index n, double epsilon,
              T* y) {
  reference::norm_row(norm, x, weight, bias, n, epsilon, y);
}
void norm_row(Norm norm, const float* x, const float* weight, const float* bias, Index n,
              double epsilon, float* y);

/// sum = x + y; sum may be either.
template <class T>
void add_rows(const T* x, const T* y, Index n, T* sum) {
  for (Index j = 0; j < n; ++j) sum[j] = x[j] + y[j];
}
void add_rows(const float* x, const float* y, Index n, float* sum);

}  // namespace masque::kernel
