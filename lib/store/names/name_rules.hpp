// Names of tensors as transformers has them today, from those of older and other programs. The
// tables are in name_rules.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/config.hpp"

namespace masque {

/// What becomes of a tensor.
struct NewName {
  std::string name;
  bool transposed = false;  ///< a matrix, kept the other way round
};

/// New names by old ones. Tensors that are not in it keep theirs.
using NameMap = std::map<std::string, NewName>;

/// LayerNorm.weight and .bias for LayerNorm.gamma and .beta; only there, as other layers have a
/// gamma of their own.
std::string with_current_layer_norm(std::string_view name);

/// New names, and what to say about them.
struct NamePlan {
  NameMap names;
  std::vector<std::string> left_out;  ///< tensors that the new names have no place for, by old name
  std::vector<std::string> unknown;   ///< names, old ones, that no table knows: kept
  std::vector<std::string> notes;
};

/// The names that transformers has for the tensors of a checkpoint: wrappers' prefixes go,
/// LayerNorm's parts get their current names, and tensors of the base model get its prefix if the
/// config's architecture has it. Names that no table knows are kept, and counted in a note. A
/// config is needed for the prefix, except for OpenAI's names of GPT-2. Names of TensorFlow are
/// those of a table (store/tf_names); the state of its optimizer is left out, with a note.
NamePlan hf_names(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config);

}  // namespace masque
