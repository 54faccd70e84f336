// The index of a sharded checkpoint: {"metadata": {…}, "weight_map": {"TENSOR": "SHARD", …}}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/violation.hpp"

namespace masque::store {

/// One line of the map: where a tensor is, and where that stands.
struct ShardEntry {
  std::string tensor;      ///< name of the tensor
  std::string shard;       ///< name of its file, in the folder of the index
  std::size_t offset = 0;  ///< byte of the shard's name in the index
};

/// A valid index. Shard names are plain components of a path.
struct ShardIndex {
  std::vector<ShardEntry> entries;  ///< in file order
  std::vector<std::string> shards;  ///< distinct, sorted
  std::string text;                 ///< the file as it is
};

/// Largest index that is read, in bytes.
inline constexpr std::uint64_t kMaxIndexBytes = 16 << 20;

/// Parses and validates the index `text`. A shard name must be one component: not empty, without
/// `/`, `\` and NUL, not `.` or `..`, at most 255 bytes: it can never lead out of the folder.
Checked<ShardIndex> parse_shard_index(std::string text);

/// Whether `text` begins with "{", after white space, and has "weight_map" in quotes somewhere: it
/// is to be read as an index, and not parsed here.
bool looks_like_index(std::string_view text);

}  // namespace masque::store
