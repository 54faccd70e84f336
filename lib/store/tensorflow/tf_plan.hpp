// From TensorFlow's names to those of transformers and back, for all tensors of a checkpoint, and
// the config that goes with the names.
#pragma once

#include <optional>
#include <string>

#include "store/tensorflow/tf_names.hpp"

namespace masque::store {

/// The names of transformers for `checkpoint`, whose tensors have those of `family`. The state of
/// an optimizer is left out, with a note; names that the table does not have are kept, with a note.
NamePlan hf_of_tf(const Checkpoint& checkpoint, const TfFamily& family);

/// TensorFlow's names, and the table that they are of.
struct TfPlan {
  NamePlan plan;                     ///< the new names
  const TfFamily* family = nullptr;  ///< nullptr where the tensors have TensorFlow's names already
};

/// The names of TensorFlow for `checkpoint` with this `config`, of which `hf` are those of
/// transformers (hf_names). What transformers stores twice, or makes itself, is left out: a head's
/// matrix and bias that equal what they are tied to, tables of positions that nothing learned.
/// Reads weights to compare these. Throws InputError for a model without a table, and for a head
/// that is not tied, for which TensorFlow's layout has no name.
TfPlan tf_names(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config,
                const NamePlan& hf);

/// The config of `checkpoint`, as ModelConfig::find. One without model_type next to tensors with
/// TensorFlow's names gets what they tell: model_type, architectures, tie_word_embeddings; T-TA its
/// type_vocab_size 0, RoFormerV2 norm_type and use_bias. The file's name stays its path. Nothing if
/// there is none. Throws InputError for a broken one.
std::optional<ModelConfig> find_config(const Checkpoint& checkpoint);
/// The message where `checkpoint` has no config and needs one: it names a PEFT adapter as such.
std::string missing_config(const Checkpoint& checkpoint);
/// Throws InputError if `checkpoint` has an adapter of PEFT besides its weights: transformers
/// computes with both, masque with the weights alone.
void refuse_adapter_beside(const Checkpoint& checkpoint);
/// The config of `checkpoint`, as find_config. Throws InputError if there is none.
ModelConfig need_config(const Checkpoint& checkpoint);

/// The text of `config` as it goes with TensorFlow's names: all fields are kept; one that says that
/// the head is not tied says that it is.
std::string tf_config(const ModelConfig& config);

}  // namespace masque::store
