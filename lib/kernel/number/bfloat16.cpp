#include "kernel/number/bfloat16.hpp"

#include <bit>

#include "base/processor/vectorize.hpp"

namespace masque::kernel {
namespace {

void to_bf16_row_loop(const float* x, Index n, std::uint16_t* y) {
  for (Index i = 0; i < n; ++i) y[i] = static_cast<std::uint16_t>(bf16_bits(x[i]) >> 16U);
}

void round_row_to_bf16_loop(const float* x, Index n, float* y) {
  for (Index i = 0; i < n; ++i) y[i] = std::bit_cast<float>(bf16_bits(x[i]) & 0xFFFF0000U);
}

}  // namespace

void to_bf16_row(const float* x, Index n, std::uint16_t* y) {
  vectorized<to_bf16_row_loop>(x, n, y);
}

void round_row_to_bf16(const float* x, Index n, float* y) {
  vectorized<round_row_to_bf16_loop>(x, n, y);
}

}  // namespace masque::kernel
