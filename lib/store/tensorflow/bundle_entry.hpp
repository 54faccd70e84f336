// What the index of a TensorFlow checkpoint says: one message about all of it, one for each tensor.
// Fields that are 0 or empty may be absent, others than these are skipped.
//
//   empty key   1 number of data files · 2 byte order (1: big-endian) ·
//               3 versions: 1 writer, 2 lowest that may read, 3 that may not (several)
//   a tensor    1 type · 2 shape · 3 data file · 4 offset · 5 size · 6 fixed32 masked CRC-32C ·
//               7 slices (several), each with 1 extents (several): 1 start, 2 length
//   a shape     2 dimensions (several): 1 size · 3 whether the rank is unknown
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/violation.hpp"
#include "tensor/dtype.hpp"

namespace masque::store {

/// The type with TensorFlow's `number`; nothing for those that we do not have. A type of fewer than
/// 8 bits is none: TensorFlow gives each element a byte.
std::optional<DType> dtype_of_tensorflow(std::uint64_t number);

/// The bytes of a tensor of the type with TensorFlow's `number` and of this `shape`; `stored`,
/// where the type has no fixed size (strings, types that we do not know). Nothing where it is more
/// than 2^64.
std::optional<std::uint64_t> tensorflow_bytes(std::uint64_t number, const Shape& shape,
                                              std::uint64_t stored);

/// TensorFlow's number of the type `dtype`; nothing if it has none.
std::optional<std::uint64_t> tensorflow_of_dtype(DType dtype);

/// How TensorFlow calls the type with its `number`: "STRING", "COMPLEX128"; "TYPE_77" for one that
/// we do not know.
std::string tensorflow_type_name(std::uint64_t number);

/// TensorFlow's number of the type that it calls `name`; nothing for other names.
std::optional<std::uint64_t> tensorflow_type(std::string_view name);

/// TensorFlow's number of strings.
inline constexpr std::uint64_t kTensorflowString = 7;

/// BundleHeaderProto: the value of the empty key.
struct BundleHeader {
  std::uint64_t shards = 0;  ///< number of data files, 1 to 1000
};

/// Which part of a dimension a slice has.
struct BundleExtent {
  std::uint64_t start = 0;              ///< first index
  std::optional<std::uint64_t> length;  ///< nothing: all of it, from 0
};

/// One extent for each dimension.
using BundleSlice = std::vector<BundleExtent>;

/// BundleEntryProto: a tensor, a slice of one, or one that lies in slices.
struct BundleEntry {
  std::string name;                 ///< the key; of slices not for people, see slice_key
  std::uint64_t type = 0;           ///< TensorFlow's number
  Shape shape;                      ///< elements in each dimension, at most 64 of these
  std::uint64_t shard = 0;          ///< its data file, from 0
  std::uint64_t offset = 0;         ///< first byte in its shard
  std::uint64_t size = 0;           ///< in bytes
  std::uint32_t crc = 0;            ///< masked CRC-32C of the bytes
  std::vector<BundleSlice> slices;  ///< if any: the tensor is in entries of their own
  std::uint64_t at = 0;             ///< byte of the index that says so
};

/// Reads the `message` of the empty key, which is at byte `at` of the index. Rules:
/// "bundle-header", "bundle-endianness", "bundle-version".
Checked<BundleHeader> read_bundle_header(std::string_view message, std::uint64_t at);

/// Reads the `message` under the key `name`, which is at byte `at` of the index. Rules:
/// "bundle-entry", "bad-number", "limit-rank", "unknown-dtype". The name is not looked at.
Checked<BundleEntry> read_bundle_entry(std::string name, std::string_view message,
                                       std::uint64_t at);

/// The key under which the `slice` of the tensor `name` is listed (TensorFlow's ordered code). It
/// begins with a NUL, as no name does.
std::string slice_key(std::string_view name, const BundleSlice& slice);

// The index of a TensorFlow bundle that is written: one data file, every tensor whole.

/// A tensor of an index.
struct BundleItem {
  std::string name;            ///< its key
  std::uint64_t type = 0;      ///< TensorFlow's number
  Shape shape;                 ///< elements in each dimension
  std::uint64_t offset = 0;    ///< first byte in the data file
  std::uint64_t size = 0;      ///< bytes
  std::uint32_t checksum = 0;  ///< masked CRC-32C
};

/// The file PREFIX.index with these `items`, byte by byte as TensorFlow 2 writes it. They are
/// sorted by the bytes of their names, which differ and are not empty (a MASQUE_CHECK).
std::string write_bundle_index(const std::vector<BundleItem>& items);

}  // namespace masque::store
