#include "kernel/rotary_rows.hpp"

#include "base/processor/vectorize.hpp"

namespace masque::kernel {
namespace {

/// Neighbours make a pair.
void rotate_adjacent_loop(const float* cosine, const float* sine, Index pairs, float direction,
                          Index head_size, Index n, float* x) {
  for (Index head = 0; head < n; head += head_size) {
    float* const at = x + head;
    MASQUE_INDEPENDENT
    for (Index t = 0; t < pairs; ++t) {
      const float a = at[2 * t];
      const float b = at[2 * t + 1];
      const float s = direction * sine[t];
      at[2 * t] = a * cosine[t] - b * s;
      at[2 * t + 1] = b * cosine[t] + a * s;
    }
  }
}

/// The halves of the rotated features make pairs.
void rotate_half_loop(const float* cosine, const float* sine, Index pairs, float direction,
                      Index head_size, Index n, float* x) {
  for (Index head = 0; head < n; head += head_size) {
    float* const low = x + head;
    float* const high = low + pairs;
    MASQUE_INDEPENDENT
    for (Index t = 0; t < pairs; ++t) {
      const float a = low[t];
      const float b = high[t];
      const float s = direction * sine[t];
      low[t] = a * cosine[t] - b * s;
      high[t] = b * cosine[t] + a * s;
    }
  }
}

}  // namespace

void rotate_row(RotaryLayout layout, const float* cosine, const float* sine, Index pairs,
                float direction, Index head_size, Index n, float* x) {
  if (layout == RotaryLayout::kAdjacent) {
    vectorized<rotate_adjacent_loop>(cosine, sine, pairs, direction, head_size, n, x);
  } else {
    vectorized<rotate_half_loop>(cosine, sine, pairs, direction, head_size, n, x);
  }
}

}  // namespace masque::kernel
