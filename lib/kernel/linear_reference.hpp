// The definition of the products: every element one sum over the inputs in order.
#pragma once

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

}  // namespace masque::kernel::reference
