// Rotary positions of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/rotary_reference.hpp"

namespace masque::kernel {

/// Rotates the first 2 · pairs features of each head of a row of n by the same angles.
template <class T>
void rotate_row(RotaryLayout layout, const T* cosine, const T* sine, Index pairs, T direction,
                Index head_size, Index n, T* x) {
  for (Index head = 0; head < n; head += head_size) {
    reference::rotate_head(layout, cosine, sine, pairs, direction, x + head);
  }
}
void rotate_row(RotaryLayout layout, const float* cosine, const float* sine, Index pairs,
                float direction, Index head_size, Index n, float* x);

}  // namespace masque::kernel
