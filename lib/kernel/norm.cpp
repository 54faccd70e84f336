#include "kernel/norm.hpp"

#include <algorithm>
#include <complex>
#include <utility>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "kernel/norm_rows.hpp"
#include "kernel/parallel.hpp"

namespace masque::kernel {
namespace {

constexpr Index kBlock = 32;  // rows whose gradients of weights are added up first

template <class T>
const T* data_or_null(std::span<T> values, Index columns) {
  MASQUE_CHECK(values.empty() || static_cast<Index>(values.size()) == columns);
  return values.empty() ? nullptr : values.data();
}

}  // namespace

template <class T>
void norm_forward(Norm norm, MatrixView<const T> x, std::span<const T> weight,
                  std::span<const T> bias, double epsilon, MatrixView<T> y) {
  MASQUE_CHECK(x.rows == y.rows && x.columns == y.columns);
  const T* w = data_or_null(weight, x.columns);
  const T* b = data_or_null(bias, x.columns);
  parallel_ranges(x.rows, row_grain(x.columns), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      norm_row(norm, x.row(i), w, b, x.columns, epsilon, y.row(i));
    }
  });
}

template <class T>
void residual_norm_forward(Norm norm, MatrixView<const T> x, MatrixView<const T> residual,
                           std::span<const T> weight, std::span<const T> bias, double epsilon,
                           MatrixView<T> sum, MatrixView<T> y) {
  MASQUE_CHECK(x.rows == y.rows && x.columns == y.columns);
  MASQUE_CHECK(x.rows == residual.rows && x.columns == residual.columns);
  MASQUE_CHECK(sum.data == nullptr || (x.rows == sum.rows && x.columns == sum.columns));
  const T* w = data_or_null(weight, x.columns);
  const T* b = data_or_null(bias, x.columns);
  parallel_ranges(x.rows, row_grain(x.columns), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      T* kept = sum.data != nullptr ? sum.row(i) : y.row(i);
      add_rows(x.row(i), residual.row(i), x.columns, kept);
      norm_row(norm, const_cast<const T*>(kept), w, b, x.columns, epsilon, y.row(i));
    }
  });
}

template <class T>
void norm_backward(Norm norm, MatrixView<const T> x, std::span<const T> weight, double epsilon,
                   MatrixView<const T> d_y, MatrixView<T> d_x, std::span<T> d_weight,
                   std::span<T> d_bias) {
  MASQUE_CHECK(x.rows == d_y.rows && x.columns == d_y.columns);
  MASQUE_CHECK(x.rows == d_x.rows && x.columns == d_x.columns);
  const T* w = data_or_null(weight, x.columns);
  data_or_null(d_weight, x.columns);
  data_or_null(d_bias, x.columns);
  // Gradients of weight and bias are sums over rows: blocks of fixed size, added in their order.
  const Index blocks = d_weight.empty() && d_bias.empty() ? 0 : divide_up(x.rows, kBlock);
  thread_local Matrix<T> kept;
  Matrix<T>& sums = kept;  // the caller's, on all threads
  sums.resize(blocks, 2 * x.columns);
  std::fill(sums.span().begin(), sums.span().end(), T(0));
  parallel_ranges(
      divide_up(x.rows, kBlock), row_grain(x.columns) / kBlock + 1, [&](Index begin, Index end) {
        for (Index i = begin * kBlock; i < std::min(end * kBlock, x.rows); ++i) {
          T* dw = d_weight.empty() ? nullptr : sums.view().row(i / kBlock);
          T* db = d_bias.empty() ? nullptr : sums.view().row(i / kBlock) + x.columns;
          norm_row_backward(norm, x.row(i), w, x.columns, epsilon, d_y.row(i), d_x.row(i), dw, db);
        }
      });
  const MatrixView<const T> parts = std::as_const(sums).view();
  for (Index b = 0; b < blocks; ++b) {
    T* dw = d_weight.data();
    T* db = d_bias.data();
    if (dw != nullptr) add_rows(const_cast<const T*>(dw), parts.row(b), x.columns, dw);
    if (db != nullptr) add_rows(const_cast<const T*>(db), parts.row(b) + x.columns, x.columns, db);
  }
}

template <class T>
void add_to(MatrixView<const T> y, MatrixView<T> x) {
  MASQUE_CHECK(x.rows == y.rows && x.columns == y.columns);
  parallel_ranges(x.rows, row_grain(x.columns), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      add_rows(const_cast<const T*>(x.row(i)), y.row(i), x.columns, x.row(i));
    }
  });
}

template <class T>
void add_scaled(double scale, MatrixView<const T> y, MatrixView<T> x) {
  if (scale == 1) return add_to<T>(y, x);
  MASQUE_CHECK(x.rows == y.rows && x.columns == y.columns);
  const T by = static_cast<T>(scale);
  for_rows(x.rows, x.columns, [&](Index i) {
    const T* from = y.row(i);
    T* to = x.row(i);
    for (Index c = 0; c < x.columns; ++c) to[c] += by * from[c];
  });
}

template <class T>
void copy_rows(MatrixView<const T> x, MatrixView<T> y) {
  MASQUE_CHECK(x.rows == y.rows && x.columns == y.columns);
  for_rows(x.rows, x.columns, [&](Index i) { std::copy_n(x.row(i), x.columns, y.row(i)); });
}

#define MASQUE_INSTANTIATE(T)                                                                      \
  template void norm_forward<T>(Norm, MatrixView<const T>, std::span<const T>, std::span<const T>, \
                                double, MatrixView<T>);                                            \
  template void residual_norm_forward<T>(Norm, MatrixView<const T>, MatrixView<const T>,           \
                                         std::span<const T>, std::span<const T>, double,           \
                                         MatrixView<T>, MatrixView<T>);                            \
  template void norm_backward<T>(Norm, MatrixView<const T>, std::span<const T>, double,            \
                                 MatrixView<const T>, MatrixView<T>, std::span<T>, std::span<T>);  \
  template void add_to<T>(MatrixView<const T>, MatrixView<T>);                                     \
  template void add_scaled<T>(double, MatrixView<const T>, MatrixView<T>);                         \
  template void copy_rows<T>(MatrixView<const T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
