#include "store/zip/zip_local.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "store/zip/zip_layout.hpp"

namespace masque::store::zip {

namespace {

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

}  // namespace

Fields read_fields(Bytes record, std::uint64_t at) {
  return {get<std::uint16_t>(record, at),      get<std::uint16_t>(record, at + 2),
          get<std::uint32_t>(record, at + 8),  get<std::uint32_t>(record, at + 12),
          get<std::uint32_t>(record, at + 16), get<std::uint16_t>(record, at + 20),
          get<std::uint16_t>(record, at + 22)};
}

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

}  // namespace masque::store::zip
