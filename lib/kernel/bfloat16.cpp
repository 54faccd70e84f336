#include "kernel/bfloat16.hpp"

#include <bit>

#include "base/vectorize.hpp"

namespace masque::kernel {
namespace {

inline std::uint32_t rounded(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t even = bits + 0x7FFFU + ((bits >> 16U) & 1U);
  const std::uint32_t is_nan = 0U - static_cast<std::uint32_t>((bits & 0x7FFFFFFFU) > 0x7F800000U);
  return (even & ~is_nan) | ((bits | 0x400000U) & is_nan);
}

}  // namespace

MASQUE_VECTORIZE
void to_bf16_row(const float* x, Index n, std::uint16_t* y) {
  for (Index i = 0; i < n; ++i) y[i] = static_cast<std::uint16_t>(rounded(x[i]) >> 16U);
}

MASQUE_VECTORIZE
void round_row_to_bf16(const float* x, Index n, float* y) {
  for (Index i = 0; i < n; ++i) y[i] = std::bit_cast<float>(rounded(x[i]) & 0xFFFF0000U);
}

}  // namespace masque::kernel
