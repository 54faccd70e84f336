// Rows of a table by index.
#pragma once

#include <span>

#include "base/types.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// y row i = table row ids[i]. Every id must be a row (checked by the caller, who knows the line).
template <class T, class I>
void embedding_forward(MatrixView<const T> table, std::span<const I> ids, MatrixView<T> y);

/// y row i += table row ids[i].
template <class T, class I>
void embedding_add(MatrixView<const T> table, std::span<const I> ids, MatrixView<T> y);

/// d_table row ids[i] += d_y row i, in the order of i. d_table without data: nothing.
template <class T, class I>
void embedding_backward(std::span<const I> ids, MatrixView<const T> d_y, MatrixView<T> d_table);

}  // namespace masque::kernel
