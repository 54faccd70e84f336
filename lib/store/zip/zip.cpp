#include "store/zip/zip.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/escape.hpp"
#include "base/utf8.hpp"
#include "store/zip/zip_end.hpp"
#include "store/zip/zip_layout.hpp"
#include "store/zip/zip_local.hpp"

namespace masque::store {

namespace zip {

namespace {

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
