// Splitting a checkpoint into shards with an index, as transformers names and writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint_writer.hpp"

namespace masque::store {

/// The bytes that `text` says: "500MB", "5GB" (powers of 1000, KB to TB), "1GiB" (powers of 1024,
/// KiB to TiB), or a plain number, also with B; 1 to 2^63 − 1. Numbers may have a fraction:
/// "1.5GB". Throws UsageError about the field `option`.
std::uint64_t parse_byte_size(std::string_view text, std::string_view option = "shard_size");

/// How tensors are ordered inside each file.
enum class TensorOrder {
  kReference,  ///< that of the reference writer: safetensors_before
  kAsGiven     ///< that of the input
};

/// Splits `weights` in tensor order: a shard takes tensors while they fit into `shard_bytes`; a
/// larger tensor gets a shard of its own. Without a size, or if one file is enough, one file. In
/// each, tensors are in `order`. Names are those of the writer.
std::vector<OutputWeights> split_into_shards(OutputWeights weights,
                                             std::optional<std::uint64_t> shard_bytes,
                                             TensorOrder order);

/// The name of the index of shards that `writer` writes: "model.safetensors.index.json".
std::string index_name(const WeightsWriter& writer);

/// The index of these `shards`, of which there is at least one: model.safetensors.index.json (or
/// that of their writer).
OutputExtra index_extra(const std::vector<OutputWeights>& shards);

}  // namespace masque::store
