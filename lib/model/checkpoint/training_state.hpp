// The names in the state of a training run, which stands next to its model: parameters, and the
// optimizer's moments of those that are trained.
#pragma once

#include <string>
#include <string_view>

#include "model/checkpoint/placed.hpp"

namespace masque::model {

/// The file of a folder.
inline constexpr const char* kTrainingStateName = "training.safetensors";

/// What a state has of each parameter: its value, and the running means of its gradient and of the
/// gradient's square.
inline constexpr const char* kStateValue = "value";
inline constexpr const char* kStateFirst = "first";
inline constexpr const char* kStateSecond = "second";

/// The key of a state's updates, for `masque.` in the metadata: of the run, and of the moments
/// before it.
inline constexpr const char* kStateStep = "step";
inline constexpr const char* kStateUpdatesBefore = "updates_before";

/// The tensor of a state: "first.embeddings.word_embeddings.weight".
std::string state_tensor_name(std::string_view what, std::string_view parameter);

/// The name of the parameter at one place of a tensor: that of the tensor in a file, and for one of
/// several places that a file stacks in it "#" and the number of the role.
std::string parameter_name(const ModelPlan& plan, const PlacedTensor& tensor,
                           const TensorPart& part);

}  // namespace masque::model
