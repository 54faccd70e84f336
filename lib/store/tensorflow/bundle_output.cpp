#include "store/tensorflow/bundle_output.hpp"

#include "store/tensorflow/leveldb_table.hpp"
#include "store/tensorflow/wire.hpp"

namespace masque::store {

namespace {

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

std::string write_bundle_index(const std::vector<BundleItem>& items) {
  LevelDbTableWriter table;
  table.add("", kHeader);
  for (const BundleItem& item : items) table.add(item.name, entry_of(item));
  return table.finish();
}

}  // namespace masque::store
