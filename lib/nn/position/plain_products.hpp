// Matrix products of position tables. Gradients are left out where a view has no data.
#pragma once

#include "base/error.hpp"
#include "kernel/norm.hpp"
#include "kernel/product/linear.hpp"

namespace masque::nn {

/// `y` (m) += `x` (n) · `a` (n, m). Each number of y gets its terms in the order of x, so its bits
/// do not depend on m.
template <class T>
void add_row_product(const T* x, MatrixView<const T> a, T* y) {
  for (Index i = 0; i < a.rows; ++i) {
    const T factor = x[i];
    const T* row = a.row(i);
    for (Index j = 0; j < a.columns; ++j) y[j] += factor * row[j];
  }
}

/// `a` (n, m) += `x` (n) ᵀ · `y` (m); nothing if a has no data.
template <class T>
void add_outer_product(const T* x, const T* y, MatrixView<T> a) {
  if (a.data == nullptr) return;
  for (Index i = 0; i < a.rows; ++i) {
    const T factor = x[i];
    T* row = a.row(i);
    for (Index j = 0; j < a.columns; ++j) row[j] += factor * y[j];
  }
}

/// aᵀ (m, n) of `a` (n, m).
template <class T>
Matrix<T> transposed_of(MatrixView<const T> a) {
  Matrix<T> out(a.columns, a.rows);
  for (Index i = 0; i < a.rows; ++i) {
    for (Index j = 0; j < a.columns; ++j) out.view().at(j, i) = a.at(i, j);
  }
  return out;
}

/// `out` (n, k) += `a` (n, m) · `b` (m, k): the bits of a row do not depend on how many there are.
template <class T>
void add_product(MatrixView<const T> a, MatrixView<const T> b, MatrixView<T> out) {
  MASQUE_CHECK(a.columns == b.rows && a.rows == out.rows && b.columns == out.columns);
  for (Index i = 0; i < a.rows; ++i) add_row_product(a.row(i), b, out.row(i));
}

/// `a` (n, m) · `b` (m, k), as add_product(). T is float, double or std::complex<double>.
template <class T>
Matrix<T> product_of(MatrixView<const T> a, MatrixView<const T> b) {
  Matrix<T> out = Matrix<T>::zero(a.rows, b.columns);
  add_product(a, b, out.view());
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
