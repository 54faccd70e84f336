// float to bfloat16, rounded to nearest, ties to even; NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

#include "base/types.hpp"

namespace masque::kernel {

/// The bits of a float whose upper half is `x` rounded; the lower half has no meaning.
inline std::uint32_t bf16_bits(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t even = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const std::uint32_t is_nan = 0U - static_cast<std::uint32_t>((bits & 0x7FFFFFFFU) > 0x7F800000U);
  return (even & ~is_nan) | ((bits | 0x400000U) & is_nan);
}

/// The float of the bfloat16 `bits`.
inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// Rounds the `n` numbers of `x` and writes their upper halves, bfloat16, to `y`.
void to_bf16_row(const float* x, Index n, std::uint16_t* y);
/// Rounds the `n` numbers of `x` to bfloat16 and writes them to `y` as floats. y may be x.
void round_row_to_bf16(const float* x, Index n, float* y);

}  // namespace masque::kernel
