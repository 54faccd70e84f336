// Pictures as PNG, for a light page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "draw/chart.hpp"
#include "draw/figure.hpp"

namespace masque::draw {

/// Greatest factor of png().
inline constexpr int kMaxPngScale = 8;

/// `figure` as the bytes of a PNG with a palette. `scale` from 1 to kMaxPngScale blows up every
/// pixel. Throws UsageError if the picture would have more than 16384 pixels along a side.
std::vector<std::byte> png(const Figure& figure, int scale = 1);
/// `chart` as the bytes of a PNG; `scale` as for a figure.
std::vector<std::byte> png(const Chart& chart, int scale = 1);

// The letters of pictures without a font: 5 by 8 dots, two more below the line.

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
