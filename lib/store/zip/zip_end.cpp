#include "store/zip/zip_end.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "store/zip/zip_layout.hpp"

namespace masque::store::zip {

namespace {

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

}  // namespace

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

}  // namespace masque::store::zip
