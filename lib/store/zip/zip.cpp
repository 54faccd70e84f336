#include "store/zip/zip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/utf8.hpp"
#include "store/violation.hpp"

namespace masque::store::zip {

namespace {

// The end of a zip file, which says where its directory is.

/// Where the directory is: it ends where the end records begin.
struct DirectoryRange {
  std::uint64_t begin = 0;  ///< first byte in the file
  std::uint64_t size = 0;   ///< bytes
  std::uint64_t count = 0;  ///< members
};

constexpr std::uint64_t kMaxComment = 0xFFFF;

std::vector<std::byte> read_bytes(const InputFile& file, std::uint64_t begin, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  file.read(begin, bytes);
  return bytes;
}

/// Place of the end record: the last signature, whose comment must reach the end of the file. A
/// record without a comment is looked for first, as Python does.
Checked<std::uint64_t> find_end(const InputFile& file) {
  const std::uint64_t size = std::min(file.size(), kEndBytes + kMaxComment);
  const auto tail = read_bytes(file, file.size() - size, size);
  const std::uint64_t begin = file.size() - size;
  if (size < kEndBytes) return Violation{"zip-end", "too short for an end record"};
  for (std::uint64_t at = size - kEndBytes;; --at) {
    if (get<std::uint32_t>(tail, at) == kEnd) {
      const std::uint64_t comment = get<std::uint16_t>(tail, at + 20);
      if (at + kEndBytes + comment == size) return begin + at;
      return Violation{"zip-end",
                       fmt::format("a comment of {} bytes, the file has {} after its end record",
                                   comment, size - at - kEndBytes),
                       "", begin + at};
    }
    if (at == 0) break;
  }
  return Violation{"zip-end", "no end record: cut short, or no zip file", "", file.size()};
}

/// The classic record: what its fields say, 16- and 32-bit numbers that may be saturated.
struct EndRecord {
  std::uint64_t disk = 0;
  std::uint64_t directory_disk = 0;
  std::uint64_t disk_count = 0;
  DirectoryRange directory;
};

EndRecord read_end_record(Bytes record) {
  return {get<std::uint16_t>(record, 4),
          get<std::uint16_t>(record, 6),
          get<std::uint16_t>(record, 8),
          {get<std::uint32_t>(record, 16), get<std::uint32_t>(record, 12),
           get<std::uint16_t>(record, 10)}};
}

EndRecord read_end_record_64(Bytes record) {
  return {get<std::uint32_t>(record, 16),
          get<std::uint32_t>(record, 20),
          get<std::uint64_t>(record, 24),
          {get<std::uint64_t>(record, 48), get<std::uint64_t>(record, 40),
           get<std::uint64_t>(record, 32)}};
}

/// A classic field says the same as that of ZIP64, or that it is to be found there.
bool agrees(std::uint64_t classic, std::uint64_t wide, std::uint64_t saturated) {
  return classic == wide || classic == saturated;
}

/// The ZIP64 record, which must stand directly before its locator at `locator_at`, as Python looks
/// for it there. `end` is the classic record.
Checked<EndRecord> read_zip64(const InputFile& file, Bytes locator, std::uint64_t locator_at,
                              const EndRecord& end) {
  const auto fail = [&](std::string_view message) {
    return Violation{"zip-zip64", std::string(message), "", locator_at};
  };
  if (get<std::uint32_t>(locator, 4) != 0 || get<std::uint32_t>(locator, 16) > 1) {
    return fail("the locator names another disk, expected one");
  }
  if (locator_at < kEnd64Bytes || get<std::uint64_t>(locator, 8) != locator_at - kEnd64Bytes) {
    return fail("the end record 64 does not stand directly before its locator");
  }
  const auto record = read_bytes(file, locator_at - kEnd64Bytes, kEnd64Bytes);
  if (get<std::uint32_t>(record, 0) != kEnd64 ||
      get<std::uint64_t>(record, 4) != kEnd64Bytes - 12) {
    return fail("no end record 64 of 56 bytes before its locator");
  }
  const EndRecord wide = read_end_record_64(record);
  if (!agrees(end.disk, wide.disk, kSaturatedCount) ||
      !agrees(end.directory_disk, wide.directory_disk, kSaturatedCount) ||
      !agrees(end.disk_count, wide.disk_count, kSaturatedCount) ||
      !agrees(end.directory.count, wide.directory.count, kSaturatedCount) ||
      !agrees(end.directory.size, wide.directory.size, kSaturated) ||
      !agrees(end.directory.begin, wide.directory.begin, kSaturated)) {
    return fail("the two end records disagree");
  }
  return wide;
}

/// Finds and validates the end record of `file`, and those of ZIP64 where they are. Throws
/// InputError if it cannot be read.
Checked<DirectoryRange> find_directory(const InputFile& file) {
  auto found = find_end(file);
  if (auto* violation = std::get_if<Violation>(&found)) return std::move(*violation);
  const std::uint64_t end_at = std::get<std::uint64_t>(found);
  EndRecord end = read_end_record(read_bytes(file, end_at, kEndBytes));
  std::uint64_t directory_end = end_at;
  if (end_at >= kLocator64Bytes) {
    const auto locator = read_bytes(file, end_at - kLocator64Bytes, kLocator64Bytes);
    if (get<std::uint32_t>(locator, 0) == kLocator64) {
      auto wide = read_zip64(file, locator, end_at - kLocator64Bytes, end);
      if (auto* violation = std::get_if<Violation>(&wide)) return std::move(*violation);
      end = std::get<EndRecord>(wide);
      directory_end = end_at - kLocator64Bytes - kEnd64Bytes;
    }
  }
  if (end.disk != 0 || end.directory_disk != 0 || end.disk_count != end.directory.count) {
    return Violation{"zip-disks", "a part of an archive of several disks, expected a whole one", "",
                     end_at};
  }
  if (checked_add(end.directory.begin, end.directory.size) != directory_end) {
    return Violation{"zip-directory",
                     fmt::format("a directory of {} bytes at {}, expected its end at {}",
                                 end.directory.size, end.directory.begin, directory_end),
                     "", end_at};
  }
  return end.directory;
}

}  // namespace

}  // namespace masque::store::zip

namespace masque::store {

namespace zip {

namespace {

// The local header of a zip file's member, which must agree with the directory.

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

/// Returns `bytes` as text: a view of them.
std::string_view text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// CRC and sizes after the data, in 32 or 64 bits, with a signature or without.
std::optional<Violation> read_descriptor(const InputFile& file, std::uint64_t limit,
                                         ZipMember& member) {
  std::string wide;
  append_number(wide, kDescriptor, member.crc, member.packed_bytes, member.bytes);
  std::string narrow;
  append_number(narrow, kDescriptor, member.crc, static_cast<std::uint32_t>(member.packed_bytes),
                static_cast<std::uint32_t>(member.bytes));
  std::string found(std::min<std::uint64_t>(wide.size(), limit - member.end), '\0');
  file.read(member.end, std::as_writable_bytes(std::span(found)));
  const bool fits = std::max(member.packed_bytes, member.bytes) < kSaturated;
  for (const std::size_t skip : {std::size_t{0}, sizeof kDescriptor}) {
    for (const std::string& one : {fits ? narrow : wide, wide}) {
      if (!found.starts_with(std::string_view(one).substr(skip))) continue;
      member.end += one.size() - skip;
      return std::nullopt;
    }
  }
  return Violation{"zip-descriptor", "no data descriptor with the directory's CRC and sizes",
                   member.name, member.end};
}

/// Reads them from `record`, where the first of them is at byte `at`: they lie in the same order in
/// both.
Fields read_fields(Bytes record, std::uint64_t at) {
  return {get<std::uint16_t>(record, at),      get<std::uint16_t>(record, at + 2),
          get<std::uint32_t>(record, at + 8),  get<std::uint32_t>(record, at + 12),
          get<std::uint32_t>(record, at + 16), get<std::uint16_t>(record, at + 20),
          get<std::uint16_t>(record, at + 22)};
}

/// Replaces the saturated ones of `numbers` by those of the ZIP64 field in the extra fields
/// `extra`, in its order. Returns what is wrong, static text; empty if nothing is.
std::string_view apply_extra(Bytes extra, std::initializer_list<std::uint64_t*> numbers) {
  std::optional<Bytes> wide;
  while (!extra.empty()) {
    if (extra.size() < 4) return "extra fields end inside a field";
    const std::size_t size = get<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4) return "an extra field reaches beyond the extra fields";
    if (get<std::uint16_t>(extra, 0) == kExtra64) {
      if (wide) return "two ZIP64 fields, expected one";
      wide = extra.subspan(4, size);
    }
    extra = extra.subspan(4 + size);
  }
  for (std::uint64_t* number : numbers) {
    if (*number != kSaturated) continue;
    if (!wide || wide->size() < 8) return "no ZIP64 number where one is announced";
    *number = get<std::uint64_t>(*wide, 0);
    wide = wide->subspan(8);
  }
  return {};
}

/// Reads the local header of `member` of `file`, of which the directory gave everything but
/// data_begin and end, which are set; compares it with what the directory said, `entry`; reads the
/// descriptor after the data, if there is one. All of it must lie before byte `limit`, where the
/// directory begins. Returns a broken rule. Throws InputError if the file cannot be read.
std::optional<Violation> read_local_header(const InputFile& file, const Fields& entry,
                                           std::uint64_t limit, ZipMember& member) {
  const auto fail = [&](std::string rule, std::string message) {
    return Violation{std::move(rule), std::move(message), member.name, member.header_begin};
  };
  /// Whether `size` more bytes from `begin` do not lie before the directory.
  const auto is_beyond = [&](std::uint64_t begin, std::uint64_t size) {
    return begin > limit || size > limit - begin;
  };
  std::array<std::byte, kLocalHeaderBytes> header{};
  if (is_beyond(member.header_begin, header.size())) {
    return fail("zip-beyond", "its local header reaches into the directory");
  }
  file.read(member.header_begin, header);
  Fields local = read_fields(header, 6);
  const std::uint64_t names_at = member.header_begin + header.size();
  std::vector<std::byte> names(local.name_bytes + local.extra_bytes);
  if (is_beyond(names_at, names.size())) {
    return fail("zip-beyond", "its name reaches into the directory");
  }
  file.read(names_at, names);
  if (get<std::uint32_t>(header, 0) != kLocalHeader ||
      text_of(Bytes(names).first(local.name_bytes)) != member.name || local.flags != entry.flags ||
      local.method != entry.method) {
    return fail("zip-local-header", "its name, flags or method differ from the directory's");
  }
  const auto wrong =
      apply_extra(Bytes(names).subspan(local.name_bytes), {&local.bytes, &local.packed_bytes});
  if (!wrong.empty()) return fail("zip-extra", std::string(wrong));
  const bool later = (entry.flags & kFlagDescriptor) != 0;  // they may be 0 here
  const auto agrees = [&](std::uint64_t here, std::uint64_t there) {
    return here == there || (later && here == 0);
  };
  if (!agrees(local.crc, entry.crc) || !agrees(local.bytes, entry.bytes) ||
      !agrees(local.packed_bytes, entry.packed_bytes)) {
    return fail("zip-local-header", "its CRC or sizes differ from the directory's");
  }
  member.data_begin = names_at + names.size();
  if (is_beyond(member.data_begin, member.packed_bytes)) {
    return fail("zip-beyond", "its data reach into the directory");
  }
  member.end = member.data_begin + member.packed_bytes;
  return later ? read_descriptor(file, limit, member) : std::nullopt;
}

std::string fold_case(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

class DirectoryReader {
 public:
  DirectoryReader(const InputFile& file, const ZipRules& rules) : file_(file), rules_(rules) {}

  std::vector<ZipMember> members;

  std::optional<Violation> read() {
    auto found = find_directory(file_);
    if (auto* violation = std::get_if<Violation>(&found)) return std::move(*violation);
    range_ = std::get<DirectoryRange>(found);
    if (range_.count > rules_.members) {
      return Violation{"limit-members",
                       fmt::format("{} members, expected at most {}", range_.count, rules_.members),
                       "", range_.begin};
    }
    if (range_.size > rules_.directory_bytes) {
      return Violation{"limit-directory",
                       fmt::format("a directory of {} bytes, expected at most {}", range_.size,
                                   rules_.directory_bytes),
                       "", range_.begin};
    }
    std::vector<std::byte> directory(range_.size);
    file_.read(range_.begin, directory);
    Bytes rest = directory;
    for (std::uint64_t i = 0; i < range_.count; ++i) {
      if (auto broken = read_entry(rest)) return broken;
    }
    at_ = range_.begin + range_.size - rest.size();
    if (!rest.empty()) {
      return fail("zip-directory", fmt::format("{} bytes after its last entry", rest.size()));
    }
    if (auto broken = check_names()) return broken;
    return check_places();
  }

 private:
  /// A violation at `at_`, about the member that is being read.
  Violation fail(std::string rule, std::string message) const {
    return {std::move(rule), std::move(message), name_, at_};
  }

  std::optional<Violation> read_entry(Bytes& rest) {
    name_.clear();
    at_ = range_.begin + range_.size - rest.size();
    if (rest.size() < kEntryBytes || get<std::uint32_t>(rest, 0) != kEntry) {
      return fail("zip-directory", fmt::format("no entry, expected {} of them", range_.count));
    }
    Fields entry = read_fields(rest, 8);
    const std::uint64_t comment_bytes = get<std::uint16_t>(rest, 32);
    const std::uint64_t disk = get<std::uint16_t>(rest, 34);
    ZipMember member;
    member.header_begin = get<std::uint32_t>(rest, 42);
    rest = rest.subspan(kEntryBytes);
    if (entry.name_bytes + entry.extra_bytes + comment_bytes > rest.size()) {
      return fail("zip-directory", "an entry reaches beyond the directory");
    }
    member.name = name_ = text_of(rest.first(entry.name_bytes));
    const Bytes extra = rest.subspan(entry.name_bytes, entry.extra_bytes);
    rest = rest.subspan(entry.name_bytes + entry.extra_bytes + comment_bytes);
    // Readers differ in what bytes beyond ASCII mean where the flag for UTF-8 is not set.
    if (!is_plain_path(member.name) || (!is_ascii(member.name) && (entry.flags & kFlagUtf8) == 0)) {
      return fail("zip-name", "the name is not a relative path of plain components in UTF-8");
    }
    if (disk != 0) return fail("zip-disks", "the member is on another disk");
    const auto wrong =
        apply_extra(extra, {&entry.bytes, &entry.packed_bytes, &member.header_begin});
    if (!wrong.empty()) return fail("zip-extra", std::string(wrong));
    if (auto broken = check_packing(entry)) return broken;
    member.method = static_cast<ZipMethod>(entry.method);
    member.crc = entry.crc;
    member.bytes = entry.bytes;
    member.packed_bytes = entry.packed_bytes;
    if (auto broken = read_local_header(file_, entry, range_.begin, member)) return broken;
    members.push_back(std::move(member));
    return std::nullopt;
  }

  std::optional<Violation> check_packing(const Fields& entry) const {
    if ((entry.flags & ~kFlagsKnown) != 0) {
      return fail("zip-flags", fmt::format("flags 0x{:04x}: encrypted or patched", entry.flags));
    }
    if (entry.method == static_cast<unsigned>(ZipMethod::kStored)) {
      if (entry.bytes == entry.packed_bytes) return std::nullopt;
      return fail("zip-sizes",
                  fmt::format("stored, but {} bytes become {}", entry.packed_bytes, entry.bytes));
    }
    if (entry.method != static_cast<unsigned>(ZipMethod::kDeflated) || !rules_.deflate) {
      return fail("zip-method", fmt::format("packed by method {}, expected {}", entry.method,
                                            rules_.deflate ? "0 or 8" : "0 (stored)"));
    }
    const auto most = checked_multiply(entry.packed_bytes, rules_.ratio);
    if (most && entry.bytes > *most) {
      return fail("zip-ratio", fmt::format("{} bytes become {}, expected at most {}",
                                           entry.packed_bytes, entry.bytes, *most));
    }
    return std::nullopt;
  }

  std::optional<Violation> check_names() const {
    std::vector<std::string> names;
    for (const ZipMember& member : members) {
      names.push_back(rules_.ignore_case ? fold_case(member.name) : member.name);
    }
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice == names.end()) return std::nullopt;
    return Violation{"zip-duplicate",
                     rules_.ignore_case ? "two members of this name, upper or lower case"
                                        : "two members of this name",
                     *twice, range_.begin};
  }

  /// The first member begins the file, and none begins inside another.
  std::optional<Violation> check_places() const {
    std::vector<const ZipMember*> in_order;
    for (const ZipMember& member : members) in_order.push_back(&member);
    std::sort(in_order.begin(), in_order.end(),
              [](const auto* a, const auto* b) { return a->header_begin < b->header_begin; });
    const std::uint64_t first = members.empty() ? range_.begin : in_order[0]->header_begin;
    if (first != 0) {
      return Violation{"zip-leading-bytes",
                       fmt::format("{} bytes before the first member, expected none", first)};
    }
    std::uint64_t end = 0;
    for (const ZipMember* member : in_order) {
      if (member->header_begin < end) {
        return Violation{"zip-overlap", "it begins inside another member", member->name,
                         member->header_begin};
      }
      end = member->end;
    }
    return std::nullopt;
  }

  const InputFile& file_;
  const ZipRules& rules_;
  DirectoryRange range_;
  std::string name_;
  std::uint64_t at_ = 0;
};

}  // namespace

}  // namespace zip

bool is_plain_path(std::string_view name) {
  for (std::string_view rest = name; !rest.empty();) {
    char32_t code_point = 0;
    const int length = decode_utf8(rest, code_point);
    if (length == 0 || code_point == 0 || code_point == '\\') return false;
    rest.remove_prefix(static_cast<std::size_t>(length));
  }
  while (true) {
    const std::size_t slash = name.find('/');
    const std::string_view component = name.substr(0, slash);
    if (component.empty() || component == "." || component == "..") return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

bool is_zip(Bytes first) {
  if (first.size() < 4) return false;
  const auto signature = zip::get<std::uint32_t>(first, 0);
  return signature == zip::kLocalHeader || signature == zip::kEnd;  // the latter: no members
}

Checked<std::vector<ZipMember>> read_zip_directory(const InputFile& file, const ZipRules& rules) {
  zip::DirectoryReader reader(file, rules);
  if (auto broken = reader.read()) return *std::move(broken);
  return std::move(reader.members);
}

std::uint32_t crc32_of(Bytes bytes, std::uint32_t before) {
  const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
  return bytes.empty() ? before : static_cast<std::uint32_t>(::crc32_z(before, data, bytes.size()));
}

std::uint32_t crc32_of_both(std::uint32_t first, std::uint32_t second, std::uint64_t size) {
  return static_cast<std::uint32_t>(::crc32_combine64(first, second, static_cast<z_off64_t>(size)));
}

namespace {

constexpr std::uint64_t kBuffer = 1 << 20;
constexpr std::uint64_t kFlagsInHeader = 6;
constexpr std::uint64_t kCrcInHeader = 14;
constexpr std::uint64_t kCrcInEntry = 16;

bool touches(const PatchedFile& file, std::uint64_t begin, std::uint64_t end) {
  return std::ranges::any_of(file.changed, [&](const auto& range) {
    return range.first < end && range.first + range.second > begin;
  });
}

/// Throws InputError if the data of before are damaged: a new sum would hide it.
std::uint32_t new_crc(const PatchedFile& file, const ZipMember& member) {
  std::vector<std::byte> buffer(std::min(kBuffer, member.bytes));
  std::uint32_t crc = 0;
  std::uint32_t before = 0;
  for (std::uint64_t at = 0; at < member.bytes; at += kBuffer) {
    const MutableBytes part = MutableBytes(buffer).first(std::min(kBuffer, member.bytes - at));
    file.file->read(member.data_begin + at, part);
    before = crc32_of(part, before);
    file.read(member.data_begin + at, part);
    crc = crc32_of(part, crc);
  }
  if (before != member.crc) {
    throw InputError(file.file->path(),
                     fmt::format("zip-crc: member '{}' is damaged: CRC-32 {:08x}, expected {:08x}",
                                 escape(member.name), before, member.crc));
  }
  return crc;
}

std::string bytes_of(std::uint32_t crc) {
  std::string out;
  append_number(out, crc);
  return out;
}

std::vector<std::byte> read(const InputFile& file, std::uint64_t begin, std::uint64_t size) {
  std::vector<std::byte> out(size);
  file.read(begin, out);
  return out;
}

}  // namespace

std::vector<Patch> zip_checksums(const PatchedFile& file, const ZipRules& rules) {
  const InputFile& input = *file.file;
  auto members = read_zip_directory(input, rules);
  auto range = zip::find_directory(input);
  for (Violation* broken : {std::get_if<Violation>(&members), std::get_if<Violation>(&range)}) {
    if (broken != nullptr) broken->file = input.path();
  }
  const auto& directory = value_or_throw(std::move(range));
  std::uint64_t entry = directory.begin;
  std::vector<Patch> patches;
  for (const ZipMember& member : value_or_throw(std::move(members))) {
    const auto fields = read(input, entry, zip::kEntryBytes);
    const std::uint64_t data_end = member.data_begin + member.packed_bytes;
    if (touches(file, member.data_begin, data_end)) {
      if (member.method != ZipMethod::kStored) {
        throw InputError(input.path(),
                         fmt::format("member '{}' is packed: not in place", escape(member.name)));
      }
      const std::string crc = bytes_of(new_crc(file, member));
      patches.push_back({entry + kCrcInEntry, crc});
      const auto header = read(input, member.header_begin, zip::kLocalHeaderBytes);
      const bool later = (zip::get<std::uint16_t>(header, kFlagsInHeader) & zip::kFlagDescriptor);
      // With a descriptor the header has 0 there, or, with some writers, the sum as well.
      if (!later || zip::get<std::uint32_t>(header, kCrcInHeader) != 0)
        patches.push_back({member.header_begin + kCrcInHeader, crc});
      if (later) {
        const auto descriptor = read(input, data_end, member.end - data_end);
        const bool signature = zip::get<std::uint32_t>(descriptor, 0) == zip::kDescriptor &&
                               (descriptor.size() == 16 || descriptor.size() == 24);
        patches.push_back({data_end + (signature ? 4 : 0), crc});
      }
    }
    entry += zip::kEntryBytes + zip::get<std::uint16_t>(fields, 28) +
             zip::get<std::uint16_t>(fields, 30) + zip::get<std::uint16_t>(fields, 32);
  }
  return patches;
}

namespace {

constexpr std::uint16_t kNeededVersion = 45;  // of the specification: ZIP64
constexpr std::uint16_t kUnix = 3U << 8U;
constexpr std::uint16_t kDate = 0x21;  // 1 January 1980, the earliest
constexpr std::uint32_t kAttributes = 0600U << 16U;
constexpr std::uint64_t kLimit = 0x7FFF'FFFF;  // beyond it Python uses ZIP64

constexpr std::uint16_t kZero16 = 0;
constexpr std::uint32_t kZero32 = 0;

/// The fields that the directory and a local header share, from the flags to the CRC.
void put_shared(std::string& out, const ZipEntry& entry) {
  const auto flags = static_cast<std::uint16_t>(is_ascii(entry.name) ? 0 : zip::kFlagUtf8);
  append_number(out, flags, kZero16, kZero16, kDate, entry.crc);  // method: stored; time: midnight
}

std::uint32_t narrow(std::uint64_t number, std::uint64_t limit) {
  return static_cast<std::uint32_t>(number > limit ? zip::kSaturated : number);
}

std::uint16_t size16(std::string_view text) {
  MASQUE_CHECK(text.size() <= 0xFFFF);
  return static_cast<std::uint16_t>(text.size());
}

/// A ZIP64 field of these numbers; nothing of none.
std::string extra_field(const std::vector<std::uint64_t>& numbers) {
  std::string out;
  if (numbers.empty()) return out;
  append_number(out, zip::kExtra64, static_cast<std::uint16_t>(8 * numbers.size()));
  for (const std::uint64_t number : numbers) append_number(out, number);
  return out;
}

std::string directory_entry(const ZipEntry& entry) {
  std::vector<std::uint64_t> wide;
  if (entry.bytes > kLimit) wide = {entry.bytes, entry.bytes};
  if (entry.header_begin > kLimit) wide.push_back(entry.header_begin);
  const std::string extra = extra_field(wide);
  std::string out;
  append_number(out, zip::kEntry, static_cast<std::uint16_t>(kUnix | kNeededVersion),
                kNeededVersion);
  put_shared(out, entry);
  append_number(out, narrow(entry.bytes, kLimit), narrow(entry.bytes, kLimit), size16(entry.name),
                size16(extra), kZero16, kZero16, kZero16, kAttributes,
                narrow(entry.header_begin, kLimit));
  return out + entry.name + extra;
}

}  // namespace

std::string write_zip_local_header(const ZipEntry& entry) {
  const std::string extra = extra_field({entry.bytes, entry.bytes});
  const auto saturated = static_cast<std::uint32_t>(zip::kSaturated);
  std::string out;
  append_number(out, zip::kLocalHeader, kNeededVersion);
  put_shared(out, entry);
  append_number(out, saturated, saturated, size16(entry.name), size16(extra));
  return out + entry.name + extra;
}

std::string write_zip_directory(const std::vector<ZipEntry>& entries, std::uint64_t begin) {
  std::string out;
  for (const ZipEntry& entry : entries) out += directory_entry(entry);
  const std::uint64_t size = out.size();
  const std::uint64_t count = entries.size();
  if (count > zip::kSaturatedCount || begin > kLimit || size > kLimit) {
    append_number(out, zip::kEnd64, std::uint64_t{zip::kEnd64Bytes - 12}, kNeededVersion,
                  kNeededVersion, kZero32, kZero32, count, count, size, begin);
    append_number(out, zip::kLocator64, kZero32, begin + size, std::uint32_t{1});
  }
  const auto count16 = static_cast<std::uint16_t>(std::min(count, zip::kSaturatedCount));
  append_number(out, zip::kEnd, kZero16, kZero16, count16, count16, narrow(size, zip::kSaturated),
                narrow(begin, zip::kSaturated), kZero16);
  return out;
}

}  // namespace masque::store
