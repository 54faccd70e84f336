// Words as people separate them: by white space.
#pragma once

#include <string_view>
#include <vector>

#include "text/step/pattern.hpp"

namespace masque::text {

/// The first run of characters that are no White_Space at or after byte `from` of `text` (valid
/// UTF-8), in bytes; empty, at the end of the text, if there is none. `from` begins a character.
Stretch next_spaced_word(std::string_view text, std::size_t from);

/// The stretch `place` of `text`, on character boundaries, without the White_Space at its ends;
/// empty if it is nothing else.
Stretch trimmed(std::string_view text, Stretch place);

/// All these runs of `text`, from left to right.
std::vector<Stretch> spaced_words(std::string_view text);

}  // namespace masque::text
