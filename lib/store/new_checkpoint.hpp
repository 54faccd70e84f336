// Random checkpoints: every tensor of a family's language model, filled as transformers fills it.
#pragma once

#include <string>
#include <vector>

#include "store/checkpoint_writer.hpp"
#include "store/config.hpp"
#include "store/family.hpp"

namespace masque {

/// A tensor that a config asks for.
struct PlannedTensor {
  std::string name;
  Shape shape;
  Init init;
};

/// The tensors of a family's language model for the sizes in a config. Throws InputError naming
/// the field if a size is missing, zero or too large.
std::vector<PlannedTensor> plan_tensors(const Family& family, const ModelConfig& config);

/// A random checkpoint as one file's description. The values depend on the seed, the tensor's name
/// and the place in it only: the same bytes for any thread count and sharding.
/// dtype: a type that can be encoded.
OutputWeights random_weights(const Family& family, const ModelConfig& config, DType dtype,
                             std::uint64_t seed);

}  // namespace masque
