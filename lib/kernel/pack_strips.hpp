// Right operands of products, cut into strips (packed_product.hpp).
#pragma once

#include <span>

#include "kernel/packed_product.hpp"

namespace masque::kernel {

/// Packs the operand whose row k is columns first … first + count − 1 of rows[k]: what weights are
/// multiplied with. Columns after the last of a strip become 0. On the calling thread.
template <class T>
void pack_rows(std::span<const T* const> rows, Index first, Index count, const Strips<T>& out);

/// Packs the operand whose column n is rows[n][0 … depth): what queries are multiplied with.
/// Columns after the last of a strip become those of the last row.
template <class T>
void pack_rows_transposed(std::span<const T* const> rows, Index depth, const Strips<T>& out);

/// The same for the rows of a matrix.
template <class T>
void pack(const MatrixView<const T>& x, const Strips<T>& out);
template <class T>
void pack_transposed(const MatrixView<const T>& x, const Strips<T>& out);

}  // namespace masque::kernel
