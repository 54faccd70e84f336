// The records of a zip file, as its reader and its writer see them. Numbers are little-endian.
//
//   per member   local header (30 bytes), name, extra fields, packed data, maybe a descriptor
//   directory    per member an entry (46 bytes), name, extra fields, comment
//   end          with ZIP64 a record (56 bytes) and its locator (20); the end record (22), comment
#pragma once

#include "base/little_endian.hpp"
#include "base/types.hpp"

namespace masque::store::zip {

constexpr std::uint32_t kLocalHeader = 0x04034b50;  ///< signature of a local header
constexpr std::uint32_t kEntry = 0x02014b50;        ///< signature of a directory's entry
constexpr std::uint32_t kEnd = 0x06054b50;          ///< signature of the end record
constexpr std::uint32_t kEnd64 = 0x06064b50;        ///< signature of the end record of ZIP64
constexpr std::uint32_t kLocator64 = 0x07064b50;    ///< signature of the locator of ZIP64
constexpr std::uint32_t kDescriptor = 0x08074b50;   ///< signature of a descriptor; some have none

constexpr std::uint64_t kLocalHeaderBytes = 30;  ///< without name and extra fields
constexpr std::uint64_t kEntryBytes = 46;        ///< without name, extra fields and comment
constexpr std::uint64_t kEndBytes = 22;          ///< without comment
constexpr std::uint64_t kEnd64Bytes = 56;        ///< without extensible data
constexpr std::uint64_t kLocator64Bytes = 20;    ///< of the whole locator

constexpr std::uint16_t kExtra64 = 1;              ///< id of the extra field with 64-bit numbers
constexpr std::uint64_t kSaturated = 0xFFFF'FFFF;  ///< "see the ZIP64 field"
constexpr std::uint64_t kSaturatedCount = 0xFFFF;  ///< the same of a count of 16 bits

constexpr unsigned kFlagDescriptor = 1U << 3U;  ///< sizes and CRC stand after the data
constexpr unsigned kFlagUtf8 = 1U << 11U;       ///< the name is UTF-8
constexpr unsigned kFlagsKnown = kFlagDescriptor | kFlagUtf8 | 6U;  ///< 6: how hard it was packed

/// The number of the type T, little-endian, at byte `at` of `bytes`, inside of these.
template <class T>
T get(Bytes bytes, std::uint64_t at) {
  return load_number<T>(bytes.subspan(at, sizeof(T)).data());
}

}  // namespace masque::store::zip
