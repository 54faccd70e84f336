// The definition of rotary positions: a pair at a time.
#pragma once

#include "base/types.hpp"
#include "kernel/rotary.hpp"

namespace masque::kernel::reference {

/// Rotates `pairs` pairs of one head `x`, laid out as `layout` says, by the angles whose `cosine`
/// and `sine` are given, one for each pair. `direction` 1 rotates, −1 rotates back, which is the
/// transposed rotation and so the gradient.
template <class T>
void rotate_head(RotaryLayout layout, const T* cosine, const T* sine, Index pairs, T direction,
                 T* x) {
  const Index step = layout == RotaryLayout::kAdjacent ? 2 : 1;
  T* other = layout == RotaryLayout::kAdjacent ? x + 1 : x + pairs;
  for (Index t = 0; t < pairs; ++t) {
    const T a = x[t * step];
    const T b = other[t * step];
    const T s = direction * sine[t];
    x[t * step] = a * cosine[t] - b * s;
    other[t * step] = b * cosine[t] + a * s;
  }
}

}  // namespace masque::kernel::reference
