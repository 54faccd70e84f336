// A member of a zip file: its name, its place and its sizes.
#pragma once

#include <cstdint>
#include <string>

namespace masque::store {

/// How the bytes of a member are packed.
enum class ZipMethod : std::uint16_t { kStored = 0, kDeflated = 8 };

/// A member whose places and sizes were checked: inside the file and disjoint from all others.
struct ZipMember {
  std::string name;                       ///< a relative path of plain components in UTF-8
  ZipMethod method = ZipMethod::kStored;  ///< how it is packed
  std::uint32_t crc = 0;                  ///< CRC-32 of the unpacked bytes
  std::uint64_t bytes = 0;                ///< unpacked
  std::uint64_t packed_bytes = 0;         ///< in the file
  std::uint64_t header_begin = 0;         ///< first byte of the local header in the file
  std::uint64_t data_begin = 0;           ///< first byte of the packed data in the file
  std::uint64_t end = 0;                  ///< one past the data and its descriptor
};

}  // namespace masque::store
