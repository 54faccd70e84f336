// Names with stars.
#pragma once

#include <string_view>

namespace masque {

/// Whether a whole text is as the pattern says: * stands for any text, empty too, and ? for any one
/// byte; all else for itself. O(pattern · text).
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace masque
