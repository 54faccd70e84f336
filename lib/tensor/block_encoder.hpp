// Floats into blocks of quantised numbers: the other direction of tensor/quantized_block.hpp.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "tensor/quantized_block.hpp"

namespace masque {

/// The formats that encode_blocks() writes, for messages: "Q4_0, Q4_K or Q8_0".
std::span<const std::string_view> encoded_formats();

/// Encodes `in`, finite numbers, a whole number of blocks, as blocks of `format`, one of
/// encoded_formats(), to `out`, which has exactly their size. Q8_0 and Q4_0: one scale for a block,
/// by its largest magnitude, bit for bit as the package gguf. Q4_K: scale and minimum of each 32
/// numbers by weighted least squares over several roundings, then rounded to 6 bits of the scales
/// of 256; no published bits. False if the scale of a block is beyond binary16, whose numbers end
/// at 65504: `out` then holds infinite scales.
bool encode_blocks(const BlockFormat& format, std::span<const float> in, MutableBytes out);

}  // namespace masque
