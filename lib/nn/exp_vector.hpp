// e^x of sixteen floats. For files compiled with -ffp-contract=fast.
#pragma once

#include "nn/vector.hpp"

namespace masque::nn::tile {

/// e^x = 2^(n + f), n whole and |f| ≤ 1/2: a polynomial times a number made of bits, within 2 units
/// of the last place. Below 2^−126 it is 0. With kBounded x ≤ 0; else above 2^127 it stays there.
template <bool kBounded>
[[gnu::always_inline]] inline void exp_vector(Vectors<float>::Aligned& x) {
  constexpr float kLog2E = 1.44269504088896341F;
  // Adding it leaves n + 127 in the low bits.
  constexpr float kRound = 12582912.0F + 127;
  Vectors<float>::Aligned y = x * kLog2E;
  y = y < -127.0F ? Vectors<float>::Aligned{} - 127.0F : y;
  if constexpr (!kBounded) y = y > 127.0F ? Vectors<float>::Aligned{} + 127.0F : y;
  const Vectors<float>::Aligned rounded = y + kRound;
  const Vectors<float>::Aligned f = y - (rounded - kRound);
  Vectors<float>::Aligned p = f * 0x1.41fbb8p-13F + 0x1.5f3e54p-10F;
  p = p * f + 0x1.3b2d4cp-7F;
  p = p * f + 0x1.c6aee8p-5F;
  p = p * f + 0x1.ebfbdcp-3F;
  p = p * f + 0x1.62e430p-1F;
  p = p * f + 1.0F;
  const Vectors<float>::Bits bits = reinterpret_cast<const Vectors<float>::Bits&>(rounded) << 23;
  x = p * reinterpret_cast<const Vectors<float>::Aligned&>(bits);
}

}  // namespace masque::nn::tile
