// Softmax of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/softmax/softmax_reference.hpp"

namespace masque::kernel {

/// `x` ← softmax of its `n` elements whose bit is set, 0 elsewhere; without any all become 0.
/// `bits` has ⌈n / 64⌉ words as in softmax_forward; nullptr: all visible.
template <class T>
void softmax_row(T* x, Index n, const std::uint64_t* bits) {
  reference::softmax_row(x, n, bits);
}
void softmax_row(float* x, Index n, const std::uint64_t* bits);

/// `d_scores` += `weights` ⊙ (`d_weights` − Σ weights ⊙ d_weights), `n` elements each. `weights` is
/// the result of softmax_row. d_scores must not overlap the others.
template <class T>
void softmax_row_backward(const T* weights, const T* d_weights, Index n, T* d_scores) {
  reference::softmax_row_backward(weights, d_weights, n, d_scores);
}
void softmax_row_backward(const float* weights, const float* d_weights, Index n, float* d_scores);

}  // namespace masque::kernel
