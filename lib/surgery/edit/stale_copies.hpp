// Weights in other formats that lie next to a checkpoint.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/checkpoint.hpp"

namespace masque::surgery {

/// Files of the folder that hold weights, judged by their names, and are not part of the
/// checkpoint: edits do not change them. Without files of other TensorFlow bundles, which are not
/// copied. Empty for a lone file. Throws InputError if the folder cannot be read.
std::vector<std::string> stale_copies(const store::Checkpoint& checkpoint);

/// The note about such a file `name`, which `what` ("is copied", "stays") unchanged.
std::string stale_copy_note(const std::string& name, std::string_view what);

}  // namespace masque::surgery
