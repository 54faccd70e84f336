#include "store/tensorflow/bundle_patch.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/interrupt.hpp"
#include "store/tensorflow/leveldb_table.hpp"
#include "store/tensorflow/wire.hpp"

namespace masque::store {

namespace {

constexpr std::uint64_t kPatchBytes = 1 << 20;
constexpr unsigned kSumField = 6;  // of BundleEntryProto

bool touches(const PatchedFile& file, const BundleEntry& entry) {
  return std::ranges::any_of(file.changed, [&](const auto& range) {
    return range.first < entry.offset + entry.size && range.first + range.second > entry.offset;
  });
}

std::uint32_t new_sum(const PatchedFile& file, const BundleEntry& entry) {
  std::vector<std::byte> buffer(std::min(kPatchBytes, entry.size));
  std::uint32_t before = 0;
  std::uint32_t after = 0;
  for (std::uint64_t at = 0; at < entry.size; at += kPatchBytes) {
    throw_if_interrupted();
    const MutableBytes part = MutableBytes(buffer).first(std::min(kPatchBytes, entry.size - at));
    file.file->read(entry.offset + at, part);
    before = crc32c(part, before);
    file.read(entry.offset + at, part);
    after = crc32c(part, after);
  }
  if (masked_crc32c(before) != entry.crc) {
    throw InputError(file.file->path(),
                     fmt::format("bundle-crc: tensor '{}' is damaged: it differs from its CRC-32C",
                                 escape(entry.name)));
  }
  return masked_crc32c(after);
}

/// Where the sum stands in the valid message of an entry; its end: nowhere.
std::size_t place_of_sum(std::string_view message) {
  std::size_t place = message.size();
  for (std::size_t at = 0; at < message.size();) {
    const std::uint64_t tag = read_varint(message, at).value();
    switch (static_cast<WireType>(tag & 7U)) {
      case WireType::kVarint: read_varint(message, at); break;
      case WireType::kFixed64: at += 8; break;
      case WireType::kBytes: {
        const std::uint64_t size = read_varint(message, at).value();
        at += size;
        break;
      }
      case WireType::kFixed32:
        if (tag >> 3 == kSumField) place = at;  // of several the last one counts
        at += 4;
        break;
    }
  }
  return place;
}

std::string with_sum(const std::string& message, std::uint32_t sum) {
  const std::size_t place = place_of_sum(message);
  std::string out = message;
  if (place == message.size()) {  // 0 is left out
    wire::put_fixed32(out, kSumField, sum);
    return out;
  }
  std::string bytes;
  wire::put_u32(bytes, sum);
  return out.replace(place, bytes.size(), bytes);
}

}  // namespace

std::string patched_bundle_index(const BundleIndex& index, std::span<const PatchedFile> files) {
  const auto rows = value_or_throw(read_leveldb_table(as_bytes(index.text), TableSums::kIgnored));
  MASQUE_CHECK(rows.size() == index.entries.size() + 1);
  LevelDbTableWriter table;
  table.add(rows[0].key, rows[0].value);
  for (std::size_t i = 0; i < index.entries.size(); ++i) {
    const BundleEntry& entry = index.entries[i];
    const auto& [key, value, offset] = rows[i + 1];
    const bool changes = entry.slices.empty() && touches(files[entry.shard], entry);
    table.add(key, changes ? with_sum(value, new_sum(files[entry.shard], entry)) : value);
  }
  return table.finish();
}

}  // namespace masque::store
