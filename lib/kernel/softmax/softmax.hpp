// Softmax over the visible elements of rows.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/matrix.hpp"

namespace masque::kernel {

/// `x` ← softmax of each row over the columns whose bit is set, 0 elsewhere; a row without any
/// becomes 0. `bits` has ⌈columns / 64⌉ words a row, column c in bit c mod 64 of word c / 64;
/// empty: all visible. float sums run over fixed lanes added in order.
template <class T>
void softmax_forward(MatrixView<T> x, std::span<const std::uint64_t> bits = {});

/// `d_scores` += P ⊙ (dP − rowsum(P ⊙ dP)), where P is `weights`, the result of softmax_forward,
/// and dP is `d_weights`, the gradient by it. One shape.
template <class T>
void softmax_backward(MatrixView<const T> weights, MatrixView<const T> d_weights,
                      MatrixView<T> d_scores);

}  // namespace masque::kernel
