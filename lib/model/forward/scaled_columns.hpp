// Columns of states times numbers that a layer has for them.
#pragma once

#include "kernel/parallel.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// `out` ← γ ⊙ `z` + β, (rows, columns), with row `which` of `gamma` and `beta` (without data: 0).
template <class T>
void scale_columns(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<const T> beta,
                   Index which, MatrixView<T> out) {
  const T* const scale = gamma.row(which);
  const T* const shift = beta.data != nullptr ? beta.row(which) : nullptr;
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = z.row(i);
    T* to = out.row(i);
    for (Index c = 0; c < z.columns; ++c) to[c] = from[c] * scale[c];
    for (Index c = 0; shift != nullptr && c < z.columns; ++c) to[c] += shift[c];
  });
}

/// `out` ← out + γ ⊙ `z`, (rows, columns), with the row `gamma`.
template <class T>
void add_scaled_columns(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<T> out) {
  const T* const scale = gamma.row(0);
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = z.row(i);
    T* to = out.row(i);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c] * scale[c];
  });
}

/// `out` ← `z`, the columns of head h times element h of the row `gamma`. `out` may be `z`.
template <class T>
void scale_heads(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<T> out) {
  const Index size = z.columns / gamma.columns;
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = z.row(i);
    T* to = out.row(i);
    for (Index h = 0; h < gamma.columns; ++h) {
      const T scale = gamma.at(0, h);
      for (Index c = h * size; c < (h + 1) * size; ++c) to[c] = from[c] * scale;
    }
  });
}

}  // namespace masque::model
