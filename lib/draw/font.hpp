// The letters of pictures without a font: 5 by 8 dots, two more below the line.
#pragma once

#include <cstdint>

namespace masque::draw {

/// Dots of a letter from left to right.
inline constexpr int kGlyphWidth = 5;
/// Dots of a letter from top to bottom.
inline constexpr int kGlyphHeight = 10;
/// Dots from one letter to the next.
inline constexpr int kGlyphAdvance = 6;

/// Whether the dot (`x`, `y`) of the picture of the character `c` is set, `y` from the top; false
/// outside of it. Characters that have none, of which there are many, are a box as wide as the
/// character.
bool glyph_dot(char32_t c, int x, int y);

/// Width of the picture of the character `c` in dots, without the gap to the next; 0 for a
/// combining mark.
int glyph_width(char32_t c);

}  // namespace masque::draw
