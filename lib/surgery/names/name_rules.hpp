// Names of tensors as transformers has them today, from those of older and other programs. The
// tables are in name_rules.cpp.
#pragma once

#include <optional>

#include "store/checkpoint.hpp"
#include "store/config.hpp"
#include "store/name_plan.hpp"

namespace masque::surgery {

/// The names that transformers has for the tensors of `checkpoint`: wrappers' prefixes go,
/// LayerNorm's parts get their current names, and tensors of the base model get its prefix if the
/// architecture of `config` has it. Names that no table knows are kept, and counted in a note. A
/// config is needed for the prefix, except for OpenAI's names of GPT-2. Names of TensorFlow are
/// those of a table (store/tensorflow/tf_names.hpp); the state of its optimizer is left out, with a
/// note.
store::NamePlan hf_names(const store::Checkpoint& checkpoint,
                         const std::optional<store::ModelConfig>& config);

}  // namespace masque::surgery
