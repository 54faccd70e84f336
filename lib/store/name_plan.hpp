// New names for the tensors of a checkpoint.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace masque::store {

/// What becomes of a tensor.
struct NewName {
  std::string name;         ///< the new one
  bool transposed = false;  ///< a matrix, kept the other way round
};

/// New names by old ones. Tensors that are not in it keep theirs.
using NameMap = std::map<std::string, NewName>;

/// `name` with LayerNorm.weight and .bias for LayerNorm.gamma and .beta at its end; only there, as
/// other layers have a gamma of their own.
std::string with_current_layer_norm(std::string_view name);

/// New names, and what to say about them.
struct NamePlan {
  NameMap names;                      ///< new names by old ones
  std::vector<std::string> left_out;  ///< tensors that the new names have no place for, by old name
  std::vector<std::string> unknown;   ///< names, old ones, that no table knows: kept
  std::vector<std::string> notes;     ///< for users, each one line
};

}  // namespace masque::store
