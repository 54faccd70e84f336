// The names in the state of a training run, which stands next to its model: parameters, and the
// optimizer's moments of those that are trained.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/checkpoint/placed.hpp"
#include "store/checkpoint.hpp"
#include "store/weights_writer.hpp"

namespace masque::model {

/// The name of the state's file in the folder of a model.
inline constexpr const char* kTrainingStateName = "training.safetensors";

/// The value of a parameter.
inline constexpr std::string_view kStateValue = "value";
/// The running mean of the gradient of a trained parameter.
inline constexpr std::string_view kStateFirst = "first";
/// The running mean of the square of that gradient.
inline constexpr std::string_view kStateSecond = "second";
/// How many updates these means of a trained parameter have had: one number.
inline constexpr std::string_view kStateUpdates = "updates";

/// The prefix of the metadata of a state.
inline constexpr std::string_view kStateFacts = "masque.";

/// Adds the digests `masque.xxh3.tensors` and `masque.xxh3.facts` to the metadata of `state`, which
/// is complete otherwise: of all tensors, and of all other metadata of a state. Sorts the metadata.
/// Reads the sources of all tensors once. Throws what they throw, and Interrupted.
void add_state_digests(store::OutputWeights& state);
/// Returns what `state` says of its run by these `names`, as metadata of another one.
store::Metadata run_facts(const store::Checkpoint& state, std::span<const std::string_view> names);
/// Throws InputError, which begins with `path`, if the metadata of `state` does not have the digest
/// that it states; a state of an earlier version states none. Reads no tensor.
void check_state_facts(const store::Checkpoint& state, const std::string& path);
/// The same of the metadata and the tensors of `state`, which are read once. Throws InputError that
/// begins with `path`, and Interrupted.
void check_state(const store::Checkpoint& state, const std::string& path);

/// What there is to say of the model in `folder` if its training was ended before the first of its
/// steps; nothing without a readable state of such a run. Reads the header of the state alone.
std::optional<std::string> not_begun_note(const std::string& folder);

/// Whether `now`, the values of a parameter of a model, are `before`, those of its state: the same,
/// or all of them rounded since to BF16, F16, F8_E4M3 or F8_E5M2 (ckpt convert). A flipped bit
/// makes other values, as rows in another order do. Both have the same size.
bool are_values_of_state(std::span<const float> before, std::span<const float> now);

/// The name in a state of `what`, one of the above, of `parameter`:
/// "first.embeddings.word_embeddings.weight".
std::string state_tensor_name(std::string_view what, std::string_view parameter);

/// The name of the parameter at the place `part` of `tensor`: that of the tensor in a file of
/// `plan`, and for one of several places that a file stacks in it "#" and the number of the role.
std::string parameter_name(const ModelPlan& plan, const PlacedTensor& tensor,
                           const TensorPart& part);

/// Rows and columns in a state of the parameter at the place `part` of `tensor`: those of the (out,
/// in) matrix, a vector is one row. `design` is the tensor's: the model's, or its detector's.
RoleShape parameter_shape(const Design& design, const PlacedTensor& tensor, const TensorPart& part);

}  // namespace masque::model
