// The names in the state of a training run, which stands next to its model: parameters, and the
// optimizer's moments of those that are trained.
#pragma once

#include <string>
#include <string_view>

#include "model/checkpoint/placed.hpp"

namespace masque::model {

/// The file of a folder.
inline constexpr const char* kTrainingStateName = "training.safetensors";

/// What a state has of each parameter: its value; and of trained ones the running means of the
/// gradient and of its square, and one number: how many updates these have had.
inline constexpr std::string_view kStateValue = "value";
inline constexpr std::string_view kStateFirst = "first";
inline constexpr std::string_view kStateSecond = "second";
inline constexpr std::string_view kStateUpdates = "updates";

/// The tensor of a state: "first.embeddings.word_embeddings.weight".
std::string state_tensor_name(std::string_view what, std::string_view parameter);

/// The name of the parameter at one place of a tensor: that of the tensor in a file, and for one of
/// several places that a file stacks in it "#" and the number of the role.
std::string parameter_name(const ModelPlan& plan, const PlacedTensor& tensor,
                           const TensorPart& part);

/// Its rows and columns in a state: those of the (out, in) matrix, a vector is one row. `design` is
/// the tensor's: the model's, or its detector's.
RoleShape parameter_shape(const Design& design, const PlacedTensor& tensor, const TensorPart& part);

}  // namespace masque::model
