// Right operands of products, cut into strips (packed_product.hpp).
#pragma once

#include <span>

#include "kernel/product/packed_product.hpp"

namespace masque::kernel {

/// Packs into `out` the operand whose row k is columns `first` … first + `count` − 1 of rows[k]:
/// what weights are multiplied with. `rows` points at the depth's rows. Columns after the last of a
/// strip become 0. On the calling thread.
template <class T>
void pack_rows(std::span<const T* const> rows, Index first, Index count, const Strips<T>& out);

/// Packs into `out` the operand whose column n is rows[n][0 … depth): what queries are multiplied
/// with. `rows` has one pointer a column, each at `depth` numbers. Columns after the last of a
/// strip become those of the last row.
template <class T>
void pack_rows_transposed(std::span<const T* const> rows, Index depth, const Strips<T>& out);

/// pack_rows for the rows of the matrix `x` (depth, columns), into `out`.
template <class T>
void pack(const MatrixView<const T>& x, const Strips<T>& out);
/// pack_rows_transposed for the rows of the matrix `x` (columns, depth), into `out`.
template <class T>
void pack_transposed(const MatrixView<const T>& x, const Strips<T>& out);

}  // namespace masque::kernel
