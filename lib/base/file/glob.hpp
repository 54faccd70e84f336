// Names with stars.
#pragma once

#include <string_view>

namespace masque {

/// Whether the whole `text` is as `pattern` says: `*` stands for any text, empty too, and `?` for
/// any one byte; all else for itself. O(pattern · text).
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace masque
