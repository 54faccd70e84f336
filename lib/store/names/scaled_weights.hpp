// Quantised weights whose type can be read as numbers all the same: they mean what they are times a
// scale that the file has next to them.
#pragma once

#include <optional>
#include <string>

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

}  // namespace masque::store
