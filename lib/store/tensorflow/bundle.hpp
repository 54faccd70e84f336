// TensorFlow's V2 checkpoints ("tensor bundles"): PREFIX.index, a LevelDB table, says where each
// tensor lies in PREFIX.data-00000-of-0000M, which hold nothing but the tensors' bytes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/format.hpp"
#include "store/tensor_info.hpp"
#include "store/tensorflow/bundle_entry.hpp"
#include "store/tensorflow/leveldb_table.hpp"

namespace masque::store {

// Tensors that lie in slices: cells of a grid, each row-major in a place of its own.

/// Where the bytes of a cell begin.
struct CellPlace {
  std::size_t file = 0;     ///< number of the data file
  std::uint64_t begin = 0;  ///< byte in it
};

/// A tensor cut into cells. The product of the numbers of cuts is the number of cells.
struct SliceGrid {
  Shape shape;                      ///< of the whole: elements in each dimension
  std::uint64_t element_bytes = 1;  ///< bytes of an element
  std::vector<Shape> cuts;          ///< for each dimension: where cells begin, ascending from 0
  std::vector<CellPlace> cells;     ///< row-major
};

/// The files that cells lie in; shared with whoever reads.
using BundleFiles = std::shared_ptr<const std::vector<InputFile>>;

/// Makes a reader that gathers the cells of `grid`. Of those in `own_file` the file is what the
/// reader is given; for others `files` must be there (a MASQUE_CHECK of the reader). Each stretch
/// of a cell that lies in order in the tensor is one read: whole cells where only the first
/// dimension is cut.
std::shared_ptr<const TensorReader> sliced_reader(SliceGrid grid, std::size_t own_file,
                                                  BundleFiles files);

/// The index of a bundle, valid in itself.
struct BundleIndex {
  std::uint64_t shards = 0;          ///< number of data files
  std::vector<BundleEntry> entries;  ///< in key order, which puts slices first
  std::string text;                  ///< the file as it is
};

/// Largest index that is read, in bytes: several hundred thousand tensors.
inline constexpr std::uint64_t kMaxBundleIndexBytes = 64 << 20;

/// Parses and validates the index `text`, and compares the checksums of its blocks unless `sums`
/// are ignored. Rules: those of read_leveldb_table and bundle_entry, "not-utf8", and
/// "unsupported-format" for V1 checkpoints, which are tables, too.
Checked<BundleIndex> parse_bundle_index(std::string text, TableSums sums = TableSums::kCompared);

/// Whether tensors of `index` may have slices in several data files: it has slices and more than
/// one file.
bool spans_shards(const BundleIndex& index);

/// What each data file of `index` holds, given their sizes in bytes, `shard_bytes`. `files` are the
/// data files for the readers of tensors that lie in several; they may be missing if nothing
/// spans_shards or is read. Strings and other types that we do not have are opaque. Rules:
/// "bundle-shard", "bundle-bounds", "size-mismatch", "shape-overflow", "overlap", "bundle-slice",
/// "unknown-dtype"; offsets are those of the index.
Checked<std::vector<FileContent>> place_bundle(const BundleIndex& index,
                                               std::span<const std::uint64_t> shard_bytes,
                                               const BundleFiles& files);

}  // namespace masque::store
