// Operands rounded to bfloat16, in numbers of any type.
#pragma once

#include <complex>

#include "base/error.hpp"
#include "kernel/number/bfloat16.hpp"
#include "tensor/matrix.hpp"

namespace masque::nn {

/// `y` ← `x` rounded to nearest bfloat16, ties to even, `n` numbers; they may be the same.
inline void round_row(const float* x, Index n, float* y) { kernel::round_row_to_bf16(x, n, y); }
/// The same for double: rounds the `n` numbers of `x` to float, then to bfloat16, into `y`.
inline void round_row(const double* x, Index n, double* y) {
  for (Index i = 0; i < n; ++i) {
    const auto near = static_cast<float>(x[i]);
    float rounded = 0;
    kernel::round_row_to_bf16(&near, 1, &rounded);
    y[i] = static_cast<double>(rounded);
  }
}
/// Fails (MASQUE_CHECK): steps have no derivative.
inline void round_row(const std::complex<double>* /*x*/, Index /*n*/, std::complex<double>* /*y*/) {
  MASQUE_CHECK(false);
}

/// A copy of `x` rounded to bfloat16.
template <class T>
Matrix<T> rounded(MatrixView<const T> x) {
  Matrix<T> out(x.rows, x.columns);
  for (Index i = 0; i < x.rows; ++i) round_row(x.row(i), x.columns, out.view().row(i));
  return out;
}

}  // namespace masque::nn
