// Softmax of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/softmax_reference.hpp"

namespace masque::kernel {

template <class T>
void softmax_row(T* x, Index n, const std::uint64_t* bits) {
  reference::softmax_row(x, n, bits);
}
void softmax_row(float* x, Index n, const std::uint64_t* bits);

template <class T>
void softmax_row_backward(const T* weights, const T* d_weights, Index n, T* d_scores) {
  reference::softmax_row_backward(weights, d_weights, n, d_scores);
}
void softmax_row_backward(const float* weights, const float* d_weights, Index n, float* d_scores);

}  // namespace masque::kernel
