// Blocks of quantised numbers, as GGUF files keep them: a few bytes with one or two scales for 32
// or 256 elements that follow each other.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/types.hpp"

namespace masque {

/// How the elements of a block are kept.
struct BlockFormat {
  std::string_view name;     ///< ggml's: "Q8_0", "Q4_K"; static text
  std::size_t elements = 0;  ///< of a block
  std::size_t bytes = 0;     ///< of a block
  /// Decodes the block at `block` to `elements` floats at `out`.
  void (*decode)(const std::byte* block, float* out) = nullptr;
};

/// The format called `name`, which lives for ever; nullptr for one that is not decoded.
const BlockFormat* find_block_format(std::string_view name);

/// All formats that are decoded, by name.
std::span<const BlockFormat> block_formats();

/// Decodes `in`, whole blocks of `format`, to `out`, as many floats as they have elements: in
/// float, operation by operation as ggml's own decoder. Scales may be infinite or NaN, and so may
/// results.
void decode_blocks(const BlockFormat& format, Bytes in, std::span<float> out);

}  // namespace masque
