// A prefix that programs put before all names of a model's tensors: "module.".
#pragma once

#include <string>
#include <string_view>

#include "store/checkpoint.hpp"

namespace masque::model {

/// What to do about a missing tensor, one of the spellings `names` of TensorRow in a family whose
/// base model has the prefix `base`, if `checkpoint` has it behind a prefix that programs put
/// before all names ("module."): the end of a message, with the command; else empty.
std::string prefix_hint(const store::Checkpoint& checkpoint, const std::string& base,
                        std::string_view names);

}  // namespace masque::model
