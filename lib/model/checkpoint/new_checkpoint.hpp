// New checkpoints of every family: the tensors of its language model under its own names, filled as
// transformers fills them, and a config.json that belongs to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/family.hpp"
#include "store/checkpoint_writer.hpp"
#include "store/config.hpp"

namespace masque::model {

/// A tensor that a config asks for.
struct NewTensor {
  std::string name;
  Shape shape;
  StartValue start;
};

/// What a config makes of a family.
struct NewModel {
  Design design;       ///< with the head that is made
  std::string config;  ///< text of config.json
  std::vector<NewTensor> tensors;
};

/// The model that `config` describes, checked as load_model checks it, with the head that
/// `architectures` names, else the family's first one. Tensors are those that transformers saves.
/// The config is as it was, but for `model_type` where it has none, and `architectures` where that
/// does not name the class that has just these tensors. Throws InputError naming the option that
/// the family refuses.
NewModel new_model(const Family& family, const store::ModelConfig& config);

struct NewCheckpointRequest {
  std::optional<std::string> family;  ///< absent: by the config's model_type
  DType dtype = DType::kF32;          ///< a type that can be encoded
  std::uint64_t seed = 0;
  std::optional<std::uint64_t> shard_bytes;
  store::WriteOptions write;
};

struct NewCheckpointResult {
  std::string family;
  std::uint64_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t files = 0;         ///< files of weights
  std::vector<std::string> notes;  ///< what of the config was changed, one line each
};

/// Writes the folder `out` with random weights for a config and its config.json. The values depend
/// on the seed, the tensor's name and the place in it only: the same for any thread count and
/// sharding. Throws InputError: unknown family, a config that its family refuses, `out` exists.
NewCheckpointResult new_checkpoint(const std::string& config_path, const std::string& out,
                                   const NewCheckpointRequest& request);

}  // namespace masque::model
