// CRC-32C (Castagnoli): the checksum of LevelDB tables and TensorFlow bundles.
#pragma once

#include "base/types.hpp"

namespace masque {

/// The CRC-32C of the bytes, running on from `running`, the sum of what stands in front of them.
/// Cost O(bytes): with the processor's instruction near memory speed, else about 400 MB/s.
std::uint32_t crc32c(Bytes bytes, std::uint32_t running = 0);

/// The same from a table, a byte at a time, on any processor: what crc32c() is compared with.
std::uint32_t crc32c_plain(Bytes bytes, std::uint32_t running = 0);

/// The sum of two neighbours from the sums of each; the second one has `second_bytes` bytes. Cost
/// O(log second_bytes).
std::uint32_t crc32c_of_both(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

/// As the formats store a sum, so that the sum of bytes that hold sums stays a good one.
inline std::uint32_t masked_crc32c(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

}  // namespace masque
