// Quantised weights whose type can be read as numbers all the same: they mean what they are times a
// scale that the file has next to them.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "store/checkpoint.hpp"
#include "store/config.hpp"

namespace masque::store {

/// The tensor of `checkpoint` that scales `weight`, by the names that programs give it: "X.SCB",
/// "X.weight_scale", "X.weight_scale_inv" … of "X.weight". Nothing if there is none. Cost O(1).
std::optional<std::string> scale_of(const Checkpoint& checkpoint, const TensorInfo& weight);

/// Throws InputError if the values of `weight` of `checkpoint` are only a part of what it means: it
/// has a scale (scale_of), or elements of 8 bits where `config`, if there is one, has
/// quantization_config. The message names either.
void check_has_no_scale(const Checkpoint& checkpoint, const std::optional<ModelConfig>& config,
                        const TensorInfo& weight);

/// Tensors of a checkpoint whose names say that they are scales, whatever program named them.
class ScaleNames {
 public:
  /// Those of `checkpoint`. Cost: all its tensors once.
  explicit ScaleNames(const Checkpoint& checkpoint);

  /// Throws InputError if one of them stands next to `weight`, in its module: a weight of 8 bits is
  /// only a part of a number then.
  void check_none_beside(const TensorInfo& weight) const;

 private:
  std::string path_;
  std::unordered_map<std::string, std::string> by_module_;  ///< its name up to the last dot
};

}  // namespace masque::store
