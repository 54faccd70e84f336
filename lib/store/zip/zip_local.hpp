// The local header of a zip file's member, which must agree with the directory.
#pragma once

#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/file.hpp"
#include "store/violation.hpp"
#include "store/zip/zip_member.hpp"

namespace masque::store::zip {

/// What the directory and the local header of a member both say.
struct Fields {
  unsigned flags = 0;              ///< kFlagDescriptor, kFlagUtf8 …
  std::uint16_t method = 0;        ///< how it is packed: see ZipMethod
  std::uint32_t crc = 0;           ///< CRC-32 of the unpacked bytes
  std::uint64_t packed_bytes = 0;  ///< in the file; may be kSaturated
  std::uint64_t bytes = 0;         ///< unpacked; may be kSaturated
  std::uint64_t name_bytes = 0;    ///< of the name, which follows the record
  std::uint64_t extra_bytes = 0;   ///< of the extra fields, which follow the name
};

/// Reads them from `record`, where the first of them is at byte `at`: they lie in the same order in
/// both.
Fields read_fields(Bytes record, std::uint64_t at);

/// Replaces the saturated ones of `numbers` by those of the ZIP64 field in the extra fields
/// `extra`, in its order. Returns what is wrong, static text; empty if nothing is.
std::string_view apply_extra(Bytes extra, std::initializer_list<std::uint64_t*> numbers);

/// Returns `bytes` as text: a view of them.
inline std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads the local header of `member` of `file`, of which the directory gave everything but
/// data_begin and end, which are set; compares it with what the directory said, `entry`; reads the
/// descriptor after the data, if there is one. All of it must lie before byte `limit`, where the
/// directory begins. Returns a broken rule. Throws InputError if the file cannot be read.
std::optional<Violation> read_local_header(const InputFile& file, const Fields& entry,
                                           std::uint64_t limit, ZipMember& member);

}  // namespace masque::store::zip
