// Softmax of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/softmax_reference.hpp"

namespace masque::kernel {

template <class T>
void softmax_row(T* x, Index n, const std::uint64_t* bits) {
  reference::softmax_row(x, n, bits);
}
void softmax_row(float* x, Index n, const std::uint64_t* bits);

}  // namespace masque::kernel
