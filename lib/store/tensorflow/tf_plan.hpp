// From TensorFlow's names to those of transformers and back, for all tensors of a checkpoint, and
// the config that goes with the names.
#pragma once

#include <optional>
#include <string>

#include "store/tensorflow/tf_names.hpp"

namespace masque::store {

/// The names of transformers for a checkpoint whose tensors have those of `family`. The state of
/// an optimizer is left out, with a note; names that the table does not have are kept, with a note.
NamePlan hf_of_tf(const Checkpoint& checkpoint, const TfFamily& family);

/// TensorFlow's names, and the table that they are of; nullptr where the tensors have them already.
struct TfPlan {
  NamePlan plan;
  const TfFamily* family = nullptr;
};

/// The names of TensorFlow for a checkpoint, of which `hf` are those of transformers (hf_names).
/// What transformers stores twice, or makes itself, is left out: a head's matrix and bias that
/// equal what they are tied to, tables of positions that nothing learned. Reads weights to compare
/// these. Throws InputError for a model without a table, and for a head that is not tied, for which
/// TensorFlow's layout has no name.
TfPlan tf_names(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config,
                const NamePlan& hf);

/// The config of a checkpoint, as ModelConfig::find. One without model_type next to tensors with
/// TensorFlow's names gets what they tell: model_type, architectures, tie_word_embeddings; T-TA its
/// type_vocab_size 0, RoFormerV2 norm_type and use_bias. The file's name stays its path.
std::optional<ModelConfig> find_config(const Checkpoint& checkpoint);
/// The same. Throws InputError if there is none.
ModelConfig need_config(const Checkpoint& checkpoint);

/// The text of the config that goes with TensorFlow's names: all fields are kept; one that says
/// that the head is not tied says that it is.
std::string tf_config(const ModelConfig& config);

}  // namespace masque::store
