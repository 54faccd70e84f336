// Splitting a checkpoint into shards with an index, as transformers names and writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint_writer.hpp"

namespace masque::store {

/// Bytes of "500MB", "5GB" (powers of 1000), "1GiB" (powers of 1024) or a plain number.
/// Throws UsageError.
std::uint64_t parse_byte_size(std::string_view text);

/// How tensors are ordered inside each file.
enum class TensorOrder { kReference, kAsGiven };

/// Splits in tensor order: a shard takes tensors while they fit into `shard_bytes`; a larger tensor
/// gets a shard of its own. Without a size, or if one file is enough, one file. Names are those of
/// the writer.
std::vector<OutputWeights> split_into_shards(OutputWeights weights,
                                             std::optional<std::uint64_t> shard_bytes,
                                             TensorOrder order);

/// "model.safetensors.index.json" (or that of another writer with shards).
std::string index_name(const WeightsWriter& writer);

/// model.safetensors.index.json (or that of their writer) for these shards.
OutputExtra index_extra(const std::vector<OutputWeights>& shards);

}  // namespace masque::store
