// Random checkpoints: every tensor of a family's language model, filled as transformers fills it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"
#include "store/config.hpp"
#include "store/names/family.hpp"

namespace masque::store {

/// A tensor that a config asks for.
struct PlannedTensor {
  std::string name;
  Shape shape;
  Init init;
};

/// The tensors of a family's language model for the sizes in a config. Throws InputError naming
/// the field if a size is missing, zero or too large.
std::vector<PlannedTensor> plan_tensors(const FamilyNames& family, const ModelConfig& config);

struct NewCheckpointRequest {
  std::optional<std::string> family;  ///< absent: by the config's model_type
  DType dtype = DType::kF32;          ///< a type that can be encoded
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> shard_bytes;
  WriteOptions write;
};

struct NewCheckpointResult {
  std::string family;
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t files = 0;  ///< files of weights
};

/// Writes the folder `out` with random weights for a config and a copy of it as config.json. The
/// values depend on the seed, the tensor's name and the place in it only: the same for any thread
/// count and sharding. Throws InputError: unknown family, impossible sizes, `out` exists.
NewCheckpointResult new_checkpoint(const std::string& config_path, const std::string& out,
                                   const NewCheckpointRequest& request);

}  // namespace masque::store
