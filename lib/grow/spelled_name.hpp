// The name of an added layer's tensor in the spelling of the file.
#pragma once

#include <string>

#include "model/checkpoint/load.hpp"
#include "store/names/named_tensors.hpp"

namespace masque::grow {

/// The name of `wanted`, a tensor of another layer of the same row, as the file spells `known`:
/// with or without `prefix_of_base` ("bert."), with old names of norms, as TensorFlow has it.
/// `names` are those of the file that `known` is from.
std::string spelled_as(const model::TensorPlan& known, const model::PlacedTensor& wanted,
                       const std::string& prefix_of_base, const store::NamedTensors& names);

}  // namespace masque::grow
