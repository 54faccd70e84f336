#include "store/zip/zip.hpp"

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
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/utf8.hpp"
#include "store/violation.hpp"
#include "store/zip/zip_end.hpp"
#include "store/zip/zip_layout.hpp"

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

}  // namespace masque::store
