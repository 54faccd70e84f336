// The records of a zip file with stored members, as Python's zipfile writes them for NumPy: always
// with ZIP64 sizes in the local headers, without times, so that the same content gives the same
// bytes.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::store {

/// A stored member to write. Its name must be a plain relative path of at most 65,535 bytes.
struct ZipEntry {
  std::string name;                ///< UTF-8
  std::uint32_t crc = 0;           ///< CRC-32 of its bytes
  std::uint64_t bytes = 0;         ///< their number
  std::uint64_t header_begin = 0;  ///< first byte of the local header in the file
};

/// The local header of `entry`, after which the member's bytes stand.
std::string write_zip_local_header(const ZipEntry& entry);

/// The directory of `entries` and the end records, which stand after the last member at byte
/// `begin`.
std::string write_zip_directory(const std::vector<ZipEntry>& entries, std::uint64_t begin);

}  // namespace masque::store
