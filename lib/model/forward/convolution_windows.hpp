// What a convolution over tokens reads, as rows of a product: DeBERTa's, next to its first layer.
#pragma once

#include <span>

#include "tensor/matrix.hpp"

namespace masque::model {

/// `windows` (rows, columns · size) ← of each row i of `x` (rows, columns) its `size` neighbours
/// i − (size − 1)/2 …, the neighbour innermost, zeros beyond its sequence. `begins`: first rows of
/// the sequences, and the end.
template <class T>
void convolution_windows(MatrixView<const T> x, std::span<const Index> begins, Index size,
                         MatrixView<T> windows);
/// Adds to `d_x` the gradient by x: `d_windows` is that by the windows; `begins` and `size` as
/// above.
template <class T>
void convolution_windows_backward(MatrixView<const T> d_windows, std::span<const Index> begins,
                                  Index size, MatrixView<T> d_x);

}  // namespace masque::model
