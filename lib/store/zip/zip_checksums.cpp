#include "store/zip/zip_checksums.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "store/zip/zip_end.hpp"
#include "store/zip/zip_layout.hpp"
#include "store/zip/zip_stream.hpp"

namespace masque::store {

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

}  // namespace masque::store
