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

/// The data files, in which slices of tensors lie; shared with whoever reads.
using BundleFiles = std::shared_ptr<const std::vector<InputFile>>;

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

// The index of a bundle whose tensors are written over where they are.

/// The file PREFIX.index, which was `index`, after bytes of data files changed: `files`[i] is data
/// file i, as it will be. Entries of tensors that change get their new sums; every other byte of
/// every entry stays. The table is written anew, not compressed. Reads the old and the new bytes of
/// those tensors once. Throws InputError if the old ones are damaged: new sums would hide it.
std::string patched_bundle_index(const BundleIndex& index, std::span<const PatchedFile> files);

}  // namespace masque::store
