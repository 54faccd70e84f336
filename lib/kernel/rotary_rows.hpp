// Rotary positions of one row: the reference for any number, fast loops for float.
#pragma once

#include "kernel/rotary_reference.hpp"

namespace masque::kernel {

/// Rotates the first 2 · `pairs` features of each head of `head_size` features in the row `x` of
/// `n` by the same angles, with `layout`, `cosine`, `sine` (`pairs` numbers each) and `direction`
/// as in reference::rotate_head.
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
