// float to bfloat16, rounded to nearest, ties to even; NaN stays NaN.
#pragma once

#include <cstdint>

#include "base/types.hpp"

namespace masque::kernel {

/// The upper halves of the rounded numbers.
void to_bf16_row(const float* x, Index n, std::uint16_t* y);
/// The rounded numbers as floats.
void round_row_to_bf16(const float* x, Index n, float* y);

}  // namespace masque::kernel
