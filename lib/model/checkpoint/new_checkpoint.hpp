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
  std::string name;  ///< as it is written
  Shape shape;       ///< in the file
  StartValue start;  ///< its elements
};

/// What a config makes of a family.
struct NewModel {
  Design design;                   ///< with the head that is made
  std::string config;              ///< text of config.json
  std::vector<NewTensor> tensors;  ///< in the order of the family's plan
  std::vector<std::string> notes;  ///< names of config.json that look misspelt, one line each
};

/// The model that `config` describes for `family`, checked as load_model checks it, with the head
/// that `architectures` names, else the family's first one. Tensors are those that transformers
/// saves. The config is as it was, but for `model_type` where it has none, and `architectures`
/// where that does not name the class that has just these tensors. Throws InputError naming the
/// option that the family refuses.
NewModel new_model(const Family& family, const store::ModelConfig& config);

/// How a new checkpoint is made.
struct NewCheckpointRequest {
  std::optional<std::string> family;         ///< absent: by the config's model_type
  DType dtype = DType::kF32;                 ///< a type that can be encoded
  std::uint64_t seed = 0;                    ///< seed of the random weights
  std::optional<std::uint64_t> shard_bytes;  ///< most bytes of a file of weights; absent: one file
  store::WriteOptions write;                 ///< how the folder is written
};

/// What was written.
struct NewCheckpointResult {
  std::string family;              ///< name of the family
  std::uint64_t tensors = 0;       ///< number of tensors
  std::uint64_t parameters = 0;    ///< elements of all tensors
  std::uint64_t files = 0;         ///< files of weights
  std::vector<std::string> notes;  ///< what of the config was replaced or looks misspelt
};

/// Writes the folder `out` with random weights for the config at `config_path`, and its
/// config.json, as `request` says. The values depend on the seed, the tensor's name and the place
/// in it only: the same for any thread count and sharding. Throws InputError: unknown model_type, a
/// config that its family refuses, values that the type cannot hold, `out` exists; UsageError:
/// unknown `request.family`, a type that cannot be encoded.
NewCheckpointResult new_checkpoint(const std::string& config_path, const std::string& out,
                                   const NewCheckpointRequest& request);

}  // namespace masque::model
