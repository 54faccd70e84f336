// Products of plain matrices.
#include <algorithm>
#include <complex>

#include "base/error.hpp"
#include "kernel/linear.hpp"
#include "kernel/onednn/matmul_onednn.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product_rows.hpp"

namespace masque::kernel {
namespace {

constexpr Index kPanelRows = 64;

/// Calls work(begin, end) for panels of rows that do not depend on the number of threads.
template <class Work>
void for_panels(Index rows, Index work_per_row, const Work& work) {
  const Index panels = (rows + kPanelRows - 1) / kPanelRows;
  const Index grain = 500000 / (kPanelRows * std::max<Index>(work_per_row, 1)) + 1;
  parallel_ranges(panels, grain, [&](Index begin, Index end) {
    for (Index p = begin; p < end; ++p) {
      work(p * kPanelRows, std::min((p + 1) * kPanelRows, rows));
    }
  });
}

template <class T>
Matrix<T> transposed(MatrixView<const T> x) {
  constexpr Index kTile = 16;
  Matrix<T> result(x.columns, x.rows);
  for (Index i0 = 0; i0 < x.rows; i0 += kTile) {
    for (Index j = 0; j < x.columns; ++j) {
      T* to = result.view().row(j);
      for (Index i = i0; i < std::min(i0 + kTile, x.rows); ++i) to[i] = x.at(i, j);
    }
  }
  return result;
}

template <class T>
void zero(MatrixView<T> y) {
  for (Index i = 0; i < y.rows; ++i) std::fill_n(y.row(i), y.columns, T(0));
}

/// y += x W, weight (in, out).
template <class T>
void add_matmul(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  for_panels(x.rows, x.columns * y.columns, [&](Index begin, Index end) {
    add_product(x.middle_rows(begin, end - begin), weight, y.middle_rows(begin, end - begin));
  });
}

/// y = x W or x Wᵀ + beta y, or y += xᵀ W; rows of y in panels.
void float_product(onednn::Gemm g) {
  const onednn::Gemm whole = g;
  for_panels(whole.m, whole.n * whole.k, [&](Index begin, Index end) {
    onednn::Gemm part = whole;
    part.m = end - begin;
    part.a += whole.transpose_a ? begin : begin * whole.a_stride;
    part.c += begin * whole.c_stride;
    onednn::gemm(part);
  });
}

}  // namespace

template <class T>
void matmul_forward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  MASQUE_CHECK(x.columns == weight.columns && x.rows == y.rows && weight.rows == y.columns);
  if (y.empty()) return;
  if constexpr (std::is_same_v<T, float>) {
    float_product({false, true, x.rows, y.columns, x.columns, x.data, x.stride, weight.data,
                   weight.stride, 0, y.data, y.stride});
  } else {
    zero(y);
    const Matrix<T> across = transposed(weight);
    add_matmul<T>(x, across.view(), y);
  }
}

template <class T>
void matmul_backward(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> d_y,
                     MatrixView<T> d_x, MatrixView<T> d_weight) {
  MASQUE_CHECK(d_y.rows == x.rows && d_y.columns == weight.rows && x.columns == weight.columns);
  if (d_x.data != nullptr && !d_x.empty()) {
    MASQUE_CHECK(d_x.rows == x.rows && d_x.columns == x.columns);
    if constexpr (std::is_same_v<T, float>) {
      float_product({false, false, x.rows, x.columns, d_y.columns, d_y.data, d_y.stride,
                     weight.data, weight.stride, 1, d_x.data, d_x.stride});
    } else {
      add_matmul(d_y, weight, d_x);
    }
  }
  if (d_weight.data != nullptr && !d_weight.empty()) {
    MASQUE_CHECK(d_weight.rows == weight.rows && d_weight.columns == weight.columns);
    if constexpr (std::is_same_v<T, float>) {
      float_product({true, false, weight.rows, weight.columns, x.rows, d_y.data, d_y.stride, x.data,
                     x.stride, 1, d_weight.data, d_weight.stride});
    } else {
      const Matrix<T> across = transposed(d_y);
      add_matmul<T>(across.view(), x, d_weight);
    }
  }
}

template <class T>
void matmul_plain(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<T> y) {
  MASQUE_CHECK(x.columns == weight.rows && x.rows == y.rows && weight.columns == y.columns);
  if (y.empty()) return;
  if constexpr (std::is_same_v<T, float>) {
    float_product({false, false, x.rows, y.columns, x.columns, x.data, x.stride, weight.data,
                   weight.stride, 0, y.data, y.stride});
  } else {
    zero(y);
    add_matmul(x, weight, y);
  }
}

#define MASQUE_INSTANTIATE(T)                                                                     \
  template void matmul_forward<T>(MatrixView<const T>, MatrixView<const T>, MatrixView<T>);       \
  template void matmul_backward<T>(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, \
                                   MatrixView<T>, MatrixView<T>);                                 \
  template void matmul_plain<T>(MatrixView<const T>, MatrixView<const T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::kernel
