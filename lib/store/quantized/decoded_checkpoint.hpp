// Checkpoints with quantised weights as what they mean.
#pragma once

#include <string>

#include "store/checkpoint.hpp"
#include "store/config.hpp"

namespace masque::store {

/// `checkpoint` with its quantised weights in the place of their parts, if `config` has
/// quantization_config: tensors of F32, decoded when they are read (Checkpoint::is_decoded()); else
/// as it is. A number is computed in float: (code − zero) · scale, in the order of operations of
/// the scheme's own programs, and not rounded to the type that these compute in. At most 256 MiB of
/// stored parts are kept in memory. Throws InputError for a scheme that is not known, a key of it
/// whose meaning is not known, no weight of the scheme, and parts that are missing or of another
/// shape or type. Reading throws InputError for a scale that is not finite, for one of 0 where the
/// scheme has none, and for a group that there is not.
Checkpoint decode_weights(Checkpoint checkpoint, const ModelConfig& config);

/// Opens the checkpoint that `path` stands for as open_checkpoint, its weights as decode_weights by
/// its config.json (own_config). Throws as both.
Checkpoint open_decoded(const std::string& path);

}  // namespace masque::store
