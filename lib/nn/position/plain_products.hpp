// Matrix products of position tables. Gradients are left out where a view has no data.
#pragma once

#include "base/error.hpp"
#include "kernel/linear.hpp"
#include "kernel/norm.hpp"

namespace masque::nn {

/// `a` (n, m) · `b` (m, k), in plain loops: the bits of a row do not depend on how many there are.
/// T is float, double or std::complex<double>.
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

/// The gradients of product_of(a, b): from `d` (n, k), the gradient by the product, `d_a` += d · bᵀ
/// and `d_b` += aᵀ · d, for `a` (n, m) and `b` (m, k).
template <class T>
void add_product_gradients(MatrixView<const T> a, MatrixView<const T> b, MatrixView<const T> d,
                           MatrixView<T> d_a, MatrixView<T> d_b) {
  // d_yᵀ x of a dense layer with d_y = a and x = d; and x wᵀ with x = d and w = b.
  if (d_b.data != nullptr) kernel::matmul_backward<T>(d, b, a, {}, d_b);
  if (d_a.data == nullptr) return;
  Matrix<T> added(a.rows, a.columns);
  kernel::matmul_forward<T>(d, b, added.view());
  kernel::add_to<T>(added.view(), d_a);
}

/// The columns of `head` in `x`, `size` of them; a view without data is returned as it is.
template <class T>
MatrixView<T> head_columns(MatrixView<T> x, Index head, Index size) {
  return x.data == nullptr ? x : x.middle_columns(head * size, size);
}

}  // namespace masque::nn
