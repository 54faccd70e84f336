// Words as people separate them: by white space.
#pragma once

#include <string_view>
#include <vector>

#include "text/pattern.hpp"

namespace masque::text {

/// The runs of characters of a text (valid UTF-8) that are no White_Space, as bytes.
std::vector<Stretch> spaced_words(std::string_view text);

}  // namespace masque::text
