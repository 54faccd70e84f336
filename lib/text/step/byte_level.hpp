// The characters that byte-level BPE writes for bytes.
#pragma once

#include "text/step/aligned_text.hpp"

namespace masque::text {

/// The character for `byte`: U+0021 to U+017F.
char32_t byte_level_char(unsigned char byte);

/// Writes the character for each byte of `text`; all of one old character share its span.
void byte_level(AlignedText& text);

}  // namespace masque::text
