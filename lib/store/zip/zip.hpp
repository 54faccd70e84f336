// The directory of a zip file, read strictly: other readers differ in what they make of a broken
// one, so whatever could be read in two ways is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "store/violation.hpp"

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

}  // namespace masque::store
