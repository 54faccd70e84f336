// CRC-32C (Castagnoli): the checksum of LevelDB tables and TensorFlow bundles.
#pragma once

#include "base/types.hpp"

namespace masque {

/// Returns the CRC-32C of `bytes`, continued from `running`, the sum of the bytes in front of them.
/// Cost O(bytes): with the instruction of SSE4.2 near memory speed, else about 400 MB/s.
std::uint32_t crc32c(Bytes bytes, std::uint32_t running = 0);

/// Returns the same sum of `bytes`, continued from `running`, from a table, a byte at a time, on
/// any processor: what crc32c() is compared with.
std::uint32_t crc32c_plain(Bytes bytes, std::uint32_t running = 0);

/// Returns the sum of two neighbours from their sums `first` and `second`; the second one has
/// `second_bytes` bytes. Cost O(log second_bytes).
std::uint32_t crc32c_of_both(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

/// Returns the sum `crc` as LevelDB's and TensorFlow's formats store it: rotated right by 15 bits,
/// plus a constant, so that the sum of bytes that hold sums stays a good one.
inline std::uint32_t masked_crc32c(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

}  // namespace masque
