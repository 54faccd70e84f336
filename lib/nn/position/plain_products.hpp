// Matrix products of position tables in plain loops, for every T. Gradients are left out where a
// view has no data.
#pragma once

#include "base/error.hpp"
#include "tensor/matrix.hpp"

namespace masque::nn {

/// a (n, m) · b (m, k).
template <class T>
Matrix<T> product_of(MatrixView<const T> a, MatrixView<const T> b) {
  MASQUE_CHECK(a.columns == b.rows);
  Matrix<T> out = Matrix<T>::zero(a.rows, b.columns);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index m = 0; m < a.columns; ++m) {
      for (Index j = 0; j < b.columns; ++j) out.view().at(i, j) += a.at(i, m) * b.at(m, j);
    }
  }
  return out;
}

/// The gradients of product_of: d_a += d · bᵀ, d_b += aᵀ · d.
template <class T>
void add_product_gradients(MatrixView<const T> a, MatrixView<const T> b, MatrixView<const T> d,
                           MatrixView<T> d_a, MatrixView<T> d_b) {
  for (Index i = 0; i < a.rows; ++i) {
    for (Index m = 0; m < a.columns; ++m) {
      for (Index j = 0; j < b.columns; ++j) {
        if (d_a.data != nullptr) d_a.at(i, m) += d.at(i, j) * b.at(m, j);
        if (d_b.data != nullptr) d_b.at(m, j) += a.at(i, m) * d.at(i, j);
      }
    }
  }
}

/// Columns of a head; a view without data stays one.
template <class T>
MatrixView<T> head_columns(MatrixView<T> x, Index head, Index size) {
  return x.data == nullptr ? x : x.middle_columns(head * size, size);
}

}  // namespace masque::nn
