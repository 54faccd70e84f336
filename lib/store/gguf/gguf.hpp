// GGUF files, versions 2 and 3, rule by rule.
//
//   "GGUF", u32 version, u64 tensors, u64 metadata
//   metadata × { text key, u32 type, value }
//   tensors  × { text name, u32 dimensions, u64 sizes (the fastest first), u32 type, u64 offset }
//   zeros up to a multiple of the alignment (general.alignment, else 32), then the data: each
//   tensor at its offset from there, a multiple of the alignment
//
// A text is a u64 length and so many bytes. All numbers are little-endian.
#pragma once

#include <cstdint>

#include "store/format.hpp"
#include "store/gguf/gguf_metadata.hpp"

namespace masque::store {

inline constexpr std::uint64_t kGgufAlignment = 32;  ///< bytes, where a file names none
/// The key of the alignment in bytes, a UINT32.
inline constexpr const char* kGgufAlignmentKey = "general.alignment";
inline constexpr std::uint64_t kGgufRank = 4;          ///< most dimensions
inline constexpr std::uint64_t kGgufNameBytes = 63;    ///< most bytes of a name that ggml can hold
inline constexpr std::uint64_t kGgufKeyBytes = 65535;  ///< most bytes of a key

/// Amounts beyond which a file is refused.
struct GgufLimits {
  std::uint64_t tensors = 1'000'000;         ///< how many
  std::uint64_t name_bytes = 65536;          ///< of one tensor's name
  std::uint64_t metadata = 16384;            ///< how many
  std::uint64_t metadata_bytes = 256 << 20;  ///< of all keys and values
};

/// Reads and validates the header of a file of `size` bytes by `read`: everything but the bytes of
/// tensors, within `limits`. Time and memory O(header); memory is allocated only after a comparison
/// with `size`, the bytes that are there. Throws what `read` throws.
Checked<FileContent> parse_gguf(const GgufRead& read, std::uint64_t size,
                                const GgufLimits& limits = {});

}  // namespace masque::store
