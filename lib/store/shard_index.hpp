// The index of a sharded checkpoint: {"metadata": {…}, "weight_map": {"TENSOR": "SHARD", …}}.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/violation.hpp"

namespace masque {

/// A valid index. Shard names are plain components of a path.
struct ShardIndex {
  std::vector<std::pair<std::string, std::string>> weight_map;  ///< tensor → shard, file order
  std::vector<std::string> shards;                              ///< distinct, sorted
  std::string text;                                             ///< the file as it is
};

/// Largest index that is read.
inline constexpr std::uint64_t kMaxIndexBytes = 64 << 20;

/// Parses and validates an index. A shard name must be one component: not empty, without '/', '\'
/// and NUL, not '.' or '..', at most 255 bytes: it can never lead out of the folder.
Checked<ShardIndex> parse_shard_index(std::string text);

/// True if the text is a JSON object with a member "weight_map".
bool looks_like_index(std::string_view text);

}  // namespace masque
