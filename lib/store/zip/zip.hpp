// The directory of a zip file, read strictly: other readers differ in what they make of a broken
// one, so whatever could be read in two ways is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file/file.hpp"
#include "base/little_endian.hpp"
#include "base/types.hpp"
#include "store/format.hpp"
#include "store/violation.hpp"

namespace masque::store::zip {

// The records of a zip file, as its reader and its writer see them. Numbers are little-endian.
//
//   per member   local header (30 bytes), name, extra fields, packed data, maybe a descriptor
//   directory    per member an entry (46 bytes), name, extra fields, comment
//   end          with ZIP64 a record (56 bytes) and its locator (20); the end record (22), comment

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

namespace masque::store {

// The directory.

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

/// What a format made of zip files allows, and limits on what one may make us do.
struct ZipRules {
  bool deflate = false;               ///< deflated members may occur next to stored ones
  bool ignore_case = true;            ///< names that differ in ASCII case only are the same
  std::uint64_t ratio = 1100;         ///< unpacked bytes of a packed one; deflate reaches 1032
  std::uint64_t members = 1'000'000;  ///< at most
  std::uint64_t directory_bytes = 256 << 20;  ///< at most
};

/// Bytes of a member's name, at most.
constexpr std::uint64_t kMaxZipName = 0xFFFF;

/// Whether a member may have this `name`: components between `/`, none of them empty, `.` or `..`,
/// in UTF-8 without NUL and `\`.
bool is_plain_path(std::string_view name);

/// Whether a file that starts with the bytes `first` is a zip file: by its first 4.
bool is_zip(Bytes first);

/// Reads and validates the directory and every local header of `file`, as `rules` allow; no data.
/// Members are in the order of the directory. Every rule has a name; the first one broken is
/// returned. Throws InputError if the file cannot be read. Memory: the directory and about 100
/// bytes a member.
Checked<std::vector<ZipMember>> read_zip_directory(const InputFile& file,
                                                   const ZipRules& rules = {});

/// The CRC-32 (of zip and PNG) of `bytes` after others whose CRC is `before`.
std::uint32_t crc32_of(Bytes bytes, std::uint32_t before = 0);

/// The CRC-32 of bytes whose CRC is `first` and, after them, `size` bytes whose CRC is `second`.
std::uint32_t crc32_of_both(std::uint32_t first, std::uint32_t second, std::uint64_t size);

// Zip files whose members are changed in place: their checksums follow.

/// The CRC-32 of every stored member of `file` that changes, where the directory, its local header
/// and its descriptor have it. Reads those members once, as they are and as they will be. Throws
/// InputError if a member that changes is damaged, if bytes of a packed member change, or if the
/// file is no valid zip file by `rules`.
std::vector<Patch> zip_checksums(const PatchedFile& file, const ZipRules& rules);

// The records of a zip file with stored members, as Python's zipfile writes them for NumPy: always
// with ZIP64 sizes in the local headers, without times, so that the same content gives the same
// bytes.

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
