// The definition of softmax over visible columns: one row at a time.
#pragma once

#include <limits>

#include "kernel/number/scalar.hpp"
#include "kernel/softmax/softmax.hpp"

namespace masque::kernel::reference {

/// Whether `column` is visible: its bit in `bits`, column c in bit c mod 64 of word c / 64.
/// nullptr: every column is visible.
inline bool is_visible(const std::uint64_t* bits, Index column) {
  return bits == nullptr || ((bits[column / 64] >> (static_cast<unsigned>(column) % 64U)) & 1U);
}

/// `x` ← softmax of its `n` elements whose bit in `bits` is set (nullptr: all), 0 elsewhere. A row
/// whose visible elements are all −∞ becomes 0 as one that sees nothing does.
template <class T>
void softmax_row(T* x, Index n, const std::uint64_t* bits) {
  // The shift is a constant: its derivative cancels.
  double largest = -std::numeric_limits<double>::infinity();
  for (Index j = 0; j < n; ++j) {
    if (is_visible(bits, j) && !(real_part(x[j]) <= largest)) largest = real_part(x[j]);
  }
  if (largest == -std::numeric_limits<double>::infinity()) {
    for (Index j = 0; j < n; ++j) x[j] = T(0);
    return;
  }
  T sum(0);
  for (Index j = 0; j < n; ++j) {
    x[j] = is_visible(bits, j) ? std::exp(x[j] - number<T>(largest)) : T(0);
    sum += x[j];
  }
  for (Index j = 0; j < n; ++j) x[j] /= sum;
}

/// `d_scores` += P ⊙ (dP − Σ P ⊙ dP), `n` elements each, where P is `weights`, the result of
/// softmax_row, and dP is `d_weights`.
template <class T>
void softmax_row_backward(const T* weights, const T* d_weights, Index n, T* d_scores) {
  T sum(0);
  for (Index j = 0; j < n; ++j) sum += weights[j] * d_weights[j];
  for (Index j = 0; j < n; ++j) d_scores[j] += weights[j] * (d_weights[j] - sum);
}

}  // namespace masque::kernel::reference
