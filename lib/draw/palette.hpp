// The colours of everything, for light and dark backgrounds. Classes and curves differ in
// lightness, so that a print without colours can be read.
#pragma once

#include "draw/figure.hpp"

namespace masque::draw {

struct Color {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
  bool operator==(const Color&) const = default;
};

enum class Theme { kLight, kDark };

/// What something is drawn with; `color_of` says how that looks.
using Ink = std::uint8_t;
inline constexpr Ink kInkBackground = 0;
inline constexpr Ink kInkText = 1;
inline constexpr Ink kInkQuiet = 2;  ///< numbers along the sides, notes
inline constexpr Ink kInkFrame = 3;  ///< frames and tick marks
inline constexpr Ink kInkRule = 4;   ///< the lines under curves
inline constexpr Ink kInkClass = 8;  ///< + class
inline constexpr Ink kInkCurve = kInkClass + kClasses;
inline constexpr int kCurveInks = 4;
inline constexpr Ink kInkHeat = kInkCurve + kCurveInks;  ///< + level
inline constexpr int kInks = kInkHeat + kHeatLevels;

/// The ink of a grid's cell; kInkBackground for no value.
inline Ink ink_of(bool heat, std::uint8_t cell) {
  if (heat && cell == kNoValue) return kInkBackground;
  return static_cast<Ink>((heat ? kInkHeat : kInkClass) + cell);
}

Color color_of(Ink ink, Theme theme);

}  // namespace masque::draw
