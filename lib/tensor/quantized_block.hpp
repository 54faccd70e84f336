// Blocks of quantised numbers, as GGUF files keep them: a few bytes with one or two scales for 32
// or 256 elements that follow each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/types.hpp"
#include "tensor/row_source.hpp"

namespace masque {

/// How the elements of a block are kept.
struct BlockFormat {
  std::string_view name;     ///< ggml's: "Q8_0", "Q4_K"; static text
  std::size_t elements = 0;  ///< of a block
  std::size_t bytes = 0;     ///< of a block
  std::size_t part = 0;      ///< elements that share a scale and a minimum
  bool minima = false;       ///< whether there are minima other than 0
  /// Writes the whole numbers of the block at `block` to `codes`, one an element, and their scales
  /// and minima, one a part, to `scales` and `minima`: all of them.
  void (*unpack)(const std::byte* block, std::int8_t* codes, float* scales,
                 float* minima) = nullptr;
};

/// The format called `name`, which lives for ever; nullptr for one that is not decoded.
const BlockFormat* find_block_format(std::string_view name);

/// All formats that are decoded, by name.
std::span<const BlockFormat> block_formats();

/// Unpacks `in`, whole blocks of `format`, to `out`, which has room for their elements and parts.
void unpack_blocks(const BlockFormat& format, Bytes in, const RowCodes& out);

/// Decodes `in`, whole blocks of `format`, to `out`, as many floats as they have elements: the
/// numbers of RowCodes, which are those of ggml's own decoder, operation by operation. Scales may
/// be infinite or NaN, and so may results.
void decode_blocks(const BlockFormat& format, Bytes in, std::span<float> out);

}  // namespace masque
