// The records of a zip file, as its reader and its writer see them. Numbers are little-endian.
//
//   per member   local header (30 bytes), name, extra fields, packed data, maybe a descriptor
//   directory    per member an entry (46 bytes), name, extra fields, comment
//   end          with ZIP64 a record (56 bytes) and its locator (20); the end record (22), comment
#pragma once

#include "base/little_endian.hpp"
#include "base/types.hpp"

namespace masque::store::zip {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kEntry = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kLocator64 = 0x07064b50;
constexpr std::uint32_t kDescriptor = 0x08074b50;

constexpr std::uint64_t kLocalHeaderBytes = 30;
constexpr std::uint64_t kEntryBytes = 46;
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kEnd64Bytes = 56;
constexpr std::uint64_t kLocator64Bytes = 20;

constexpr std::uint16_t kExtra64 = 1;              ///< id of the extra field with 64-bit numbers
constexpr std::uint64_t kSaturated = 0xFFFF'FFFF;  ///< "see the ZIP64 field"
constexpr std::uint64_t kSaturatedCount = 0xFFFF;

constexpr unsigned kFlagDescriptor = 1U << 3U;  ///< sizes and CRC stand after the data
constexpr unsigned kFlagUtf8 = 1U << 11U;
constexpr unsigned kFlagsKnown = kFlagDescriptor | kFlagUtf8 | 6U;  ///< 6: how hard it was packed

/// The number at `at`, which must be inside.
template <class T>
T get(Bytes bytes, std::uint64_t at) {
  return load_number<T>(bytes.subspan(at, sizeof(T)).data());
}

}  // namespace masque::store::zip
