// Zip files byte by byte, with every field free to lie.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/naive_npy.hpp"

namespace masque::test {

/// A number of `width` bytes, lowest first.
inline std::string number(std::uint64_t value, int width) {
  std::string out;
  for (int i = 0; i < width; ++i) out += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
  return out;
}

/// A member to be; what is not set follows from the data.
struct ZipPart {
  std::string name = "a.npy";
  std::string data = "hello";
  unsigned method = 0;
  unsigned flags = 0;
  std::string local_extra = {};
  std::string extra = {};
  std::string descriptor = {};                        ///< after the data
  std::optional<std::uint64_t> bytes = std::nullopt;  ///< unpacked
  std::optional<std::uint32_t> crc = std::nullopt;
  bool empty_local = false;  ///< CRC and sizes are 0 in the local header
};

/// A file in the making, and where its parts are.
struct ZipFile {
  std::string text;
  std::vector<std::size_t> local;  ///< local headers
  std::vector<std::size_t> entry;  ///< entries of the directory
  std::size_t directory = 0;
  std::size_t end = 0;  ///< the end record

  /// The file with a number replaced.
  std::string with(std::size_t at, std::uint64_t value, int width) const {
    std::string out = text;
    return out.replace(at, static_cast<std::size_t>(width), number(value, width));
  }
};

inline ZipFile make_zip(const std::vector<ZipPart>& parts) {
  ZipFile zip;
  std::string directory;
  for (const ZipPart& part : parts) {
    const std::uint64_t bytes = part.bytes.value_or(part.data.size());
    const std::uint32_t crc = part.crc.value_or(naive_crc32(part.data));
    const std::string start =
        number(45, 2) + number(part.flags, 2) + number(part.method, 2) + number(0x210000, 4);
    const std::string sizes = number(crc, 4) + number(part.data.size(), 4) + number(bytes, 4);
    zip.local.push_back(zip.text.size());
    zip.entry.push_back(directory.size());
    directory += "PK\x01\x02" + number(45, 2) + start + sizes + number(part.name.size(), 2) +
                 number(part.extra.size(), 2) + number(0, 10) + number(zip.text.size(), 4) +
                 part.name + part.extra;
    zip.text += "PK\x03\x04" + start + (part.empty_local ? number(0, 12) : sizes) +
                number(part.name.size(), 2) + number(part.local_extra.size(), 2) + part.name +
                part.local_extra + part.data + part.descriptor;
  }
  zip.directory = zip.text.size();
  for (std::size_t& at : zip.entry) at += zip.directory;
  zip.text += directory;
  zip.end = zip.text.size();
  zip.text += "PK\x05\x06" + number(0, 4) + number(parts.size(), 2) + number(parts.size(), 2) +
              number(directory.size(), 4) + number(zip.directory, 4) + number(0, 2);
  return zip;
}

/// The same file with the records of ZIP64 before its end record.
inline std::string with_zip64(const ZipFile& zip, std::size_t members) {
  const std::uint64_t size = zip.end - zip.directory;
  return zip.text.substr(0, zip.end) + "PK\x06\x06" + number(44, 8) + number(45, 2) +
         number(45, 2) + number(0, 8) + number(members, 8) + number(members, 8) + number(size, 8) +
         number(zip.directory, 8) + "PK\x06\x07" + number(0, 4) + number(zip.end, 8) +
         number(1, 4) + zip.text.substr(zip.end);
}

}  // namespace masque::test
