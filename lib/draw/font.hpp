// The letters of pictures without a font: 5 by 8 dots, two more below the line.
#pragma once

#include <cstdint>

namespace masque::draw {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 10;
/// From one letter to the next.
inline constexpr int kGlyphAdvance = 6;

/// Whether the dot (x, y) of a character's picture is set, y from the top. Characters that have
/// none, of which there are many, are a box as wide as the character.
bool glyph_dot(char32_t c, int x, int y);

/// Width of the character's picture, without the gap to the next.
int glyph_width(char32_t c);

}  // namespace masque::draw
