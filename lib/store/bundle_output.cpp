#include "store/bundle_output.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "store/leveldb_table_writer.hpp"
#include "store/wire_writer.hpp"

namespace masque {

namespace {

/// Enum DataType of TensorFlow's types.proto.
constexpr std::array<std::pair<DType, unsigned>, 18> kTypes{{{DType::kF32, 1},
                                                             {DType::kF64, 2},
                                                             {DType::kI32, 3},
                                                             {DType::kU8, 4},
                                                             {DType::kI16, 5},
                                                             {DType::kI8, 6},
                                                             {DType::kC64, 8},
                                                             {DType::kI64, 9},
                                                             {DType::kBool, 10},
                                                             {DType::kBF16, 14},
                                                             {DType::kU16, 17},
                                                             {DType::kF16, 19},
                                                             {DType::kU32, 22},
                                                             {DType::kU64, 23},
                                                             {DType::kF8E5M2, 24},
                                                             {DType::kF8E4M3, 25},
                                                             {DType::kF8E4M3Fnuz, 26},
                                                             {DType::kF8E5M2Fnuz, 28}}};

constexpr std::array<std::pair<std::string_view, unsigned>, 3> kOtherTypes{
    {{"STRING", 7}, {"COMPLEX128", 18}, {"VARIANT", 21}}};

/// One shard, little-endian (absent), version 1 of the format.
constexpr std::string_view kHeader{"\x08\x01\x1A\x02\x08\x01", 6};

std::string entry_of(const BundleItem& item) {
  std::string shape;
  for (const std::uint64_t size : item.shape) {
    std::string dimension;
    wire::put_number(dimension, 1, size);
    wire::put_bytes(shape, 2, dimension);
  }
  std::string entry;
  wire::put_number(entry, 1, item.type);
  wire::put_bytes(entry, 2, shape);
  wire::put_number(entry, 4, item.offset);
  wire::put_number(entry, 5, item.size);
  wire::put_fixed32(entry, 6, item.checksum);
  return entry;
}

}  // namespace

std::optional<unsigned> bundle_type(DType dtype) {
  const auto* found = std::ranges::find(kTypes, dtype, &std::pair<DType, unsigned>::first);
  return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

std::optional<unsigned> bundle_type(std::string_view name) {
  const auto* found =
      std::ranges::find(kOtherTypes, name, &std::pair<std::string_view, unsigned>::first);
  return found == kOtherTypes.end() ? std::nullopt : std::optional(found->second);
}

std::string write_bundle_index(const std::vector<BundleItem>& items) {
  LevelDbTableWriter table;
  table.add("", kHeader);
  for (const BundleItem& item : items) table.add(item.name, entry_of(item));
  return table.finish();
}

}  // namespace masque
