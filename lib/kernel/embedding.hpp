// Rows of a table by index.
#pragma once

#include <span>

#include "base/types.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// Row i of `y` (ids, columns) = row `ids`[i] of `table` (rows, columns). Every id must be a row:
/// the caller, who knows the line of the input, checks it.
template <class T, class I>
void embedding_forward(MatrixView<const T> table, std::span<const I> ids, MatrixView<T> y);

/// Row i of `y` += row `ids`[i] of `table`; shapes as in embedding_forward.
template <class T, class I>
void embedding_add(MatrixView<const T> table, std::span<const I> ids, MatrixView<T> y);

/// Row `ids`[i] of `d_table` += row i of `d_y`, in the order of i. Does nothing if d_table has no
/// data.
template <class T, class I>
void embedding_backward(std::span<const I> ids, MatrixView<const T> d_y, MatrixView<T> d_table);

}  // namespace masque::kernel
