// The backward pass of model/forward/scaled_columns.hpp. Matrices of gradients that are not
// wanted have no data. Sums over rows are in the order of the rows.
#pragma once

#include "kernel/parallel.hpp"
#include "model/forward/score_scale.hpp"
#include "tensor/matrix.hpp"

namespace masque::train {

/// Backward pass of scale_columns() of `z`, with row `which` of `gamma`, and, without β, of
/// add_scaled_columns(): from `d_out`, adds to `d_z` and to row `which` of `d_gamma` and `d_beta`.
template <class T>
void scale_columns_backward(MatrixView<const T> z, MatrixView<const T> gamma, Index which,
                            MatrixView<const T> d_out, MatrixView<T> d_z, MatrixView<T> d_gamma,
                            MatrixView<T> d_beta) {
  const T* const scale = gamma.row(which);
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = d_out.row(i);
    T* to = d_z.row(i);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c] * scale[c];
  });
  for (Index i = 0; d_gamma.data != nullptr && i < z.rows; ++i) {
    const T* from = d_out.row(i);
    const T* x = z.row(i);
    T* to = d_gamma.row(which);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c] * x[c];
  }
  for (Index i = 0; d_beta.data != nullptr && i < z.rows; ++i) {
    const T* from = d_out.row(i);
    T* to = d_beta.row(which);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c];
  }
}

/// Backward pass of scale_heads() of `z` with the row `gamma`: `d_out` becomes the gradient of z;
/// adds to `d_gamma`.
template <class T>
void scale_heads_backward(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<T> d_out,
                          MatrixView<T> d_gamma) {
  const Index size = z.columns / gamma.columns;
  for (Index i = 0; d_gamma.data != nullptr && i < z.rows; ++i) {
    const T* from = d_out.row(i);
    const T* x = z.row(i);
    for (Index h = 0; h < gamma.columns; ++h) {
      T sum{};
      for (Index c = h * size; c < (h + 1) * size; ++c) sum += from[c] * x[c];
      d_gamma.at(0, h) += sum;
    }
  }
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    T* own = d_out.row(i);
    for (Index h = 0; h < gamma.columns; ++h) {
      const T scale = gamma.at(0, h);
      for (Index c = h * size; c < (h + 1) * size; ++c) own[c] *= scale;
    }
  });
}

/// Backward pass of model::scale_queries() with the same `s`, `offset`, `blocks` and `keys`:
/// `d_query`, that of the scaled queries, becomes that of the queries; adds to `d_s`. `scaled`:
/// what scale_queries() left. A scale of 0, which a query that sees one key has where the offset is
/// 0, adds nothing to d_s.
template <class T>
void scale_queries_backward(MatrixView<const T> s, double offset, const mask::BlockMap* blocks,
                            Index keys, MatrixView<const T> scaled, MatrixView<T> d_query,
                            MatrixView<T> d_s) {
  const Index size = scaled.columns / s.columns;
  model::each_log_visible(blocks, keys, scaled.rows, s.columns,
                          [&](Index i, Index h, double log_n) {
                            const T scale = model::score_scale(s.at(0, h), log_n, offset);
                            T sum{};
                            for (Index c = h * size; c < (h + 1) * size; ++c) {
                              sum += d_query.at(i, c) * scaled.at(i, c);
                              d_query.at(i, c) *= scale;
                            }
                            if (d_s.data != nullptr && scale != T{})
                              d_s.at(0, h) += sum * static_cast<T>(log_n) / scale;
                          });
}

}  // namespace masque::train
