// The object graph of a TensorFlow 2 checkpoint: tensors are called by their path from the saved
// object ("model/layer/kernel/.ATTRIBUTES/VARIABLE_VALUE"); the graph has the names of the
// variables.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/name_plan.hpp"

namespace masque::store {

/// The string tensor that the graph is in.
inline constexpr const char* kGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";

/// A variable of the graph.
struct GraphVariable {
  std::string key;   ///< under which it is saved
  std::string name;  ///< what the program called it; may be empty, or that of several
};

/// The variables of the TrackableObjectGraph in `message`, in its order. Nothing if this is no
/// message of one.
std::optional<std::vector<GraphVariable>> read_object_graph(std::string_view message);

/// For each tensor of `checkpoint`, opaque ones too, the name of its variable, where no other one
/// has it; the others are counted in a note. The graph is left out, with a note. Throws InputError
/// if the checkpoint has no object graph, or one that cannot be read.
NamePlan variable_names(const Checkpoint& checkpoint);

}  // namespace masque::store
