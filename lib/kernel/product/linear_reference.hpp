// The definition of the products: every element one sum over the inputs in order.
#pragma once

#include <span>

#include "tensor/matrix.hpp"

namespace masque::kernel::reference {

/// `y` (rows, out) = x Wᵀ for `x` (rows, in) and `weight` (out, in).
template <class T>
void matmul(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < weight.rows; ++j) {
      T sum(0);
      for (Index k = 0; k < x.columns; ++k) sum += x.at(i, k) * weight.at(j, k);
      y.at(i, j) = sum;
    }
  }
}

/// `y` (rows, out) += x W for `x` (rows, in) and `weight` (in, out): each sum
/// goes on from what y holds.
template <class T>
void add_product(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  for (Index i = 0; i < x.rows; ++i) {
    for (Index k = 0; k < x.columns; ++k) {
      const T factor = x.at(i, k);
      const T* from = weight.row(k);
      T* to = y.row(i);
      for (Index j = 0; j < weight.columns; ++j) to[j] += factor * from[j];
    }
  }
}

// The definition of the products of training: every element one sum in order.

/// `d_weight` (out, in) += d_yᵀ x and `d_bias` += Σ_r d_y(r, ·) unless it is empty, for `x` (rows,
/// in) and `d_y` (rows, out).
template <class T>
void add_weight_gradient(MatrixView<const T> x, MatrixView<const T> d_y, MatrixView<T> d_weight,
                         std::span<T> d_bias) {
  for (Index r = 0; r < x.rows; ++r) {
    for (Index o = 0; o < d_y.columns; ++o) {
      const T factor = d_y.at(r, o);
      for (Index i = 0; i < x.columns; ++i) d_weight.at(o, i) += factor * x.at(r, i);
      if (!d_bias.empty()) d_bias[static_cast<std::size_t>(o)] += factor;
    }
  }
}

}  // namespace masque::kernel::reference
