// The colours of everything, for light and dark backgrounds. Classes and curves differ in
// lightness, so that a print without colours can be read.
#pragma once

#include "draw/figure.hpp"

namespace masque::draw {

/// A colour in sRGB.
struct Color {
  std::uint8_t red = 0;    ///< from 0 to 255
  std::uint8_t green = 0;  ///< from 0 to 255
  std::uint8_t blue = 0;   ///< from 0 to 255
  bool operator==(const Color&) const = default;
};

/// The background of the page.
enum class Theme { kLight, kDark };

/// What something is drawn with; `color_of` says how that looks.
using Ink = std::uint8_t;
inline constexpr Ink kInkBackground = 0;                 ///< the page
inline constexpr Ink kInkText = 1;                       ///< titles, names and labels
inline constexpr Ink kInkQuiet = 2;                      ///< numbers along the sides, notes
inline constexpr Ink kInkFrame = 3;                      ///< frames and tick marks
inline constexpr Ink kInkRule = 4;                       ///< the lines under curves
inline constexpr Ink kInkClass = 8;                      ///< + class
inline constexpr Ink kInkCurve = kInkClass + kClasses;   ///< + curve, below kCurveInks
inline constexpr int kCurveInks = 4;                     ///< number of colours of curves
inline constexpr Ink kInkHeat = kInkCurve + kCurveInks;  ///< + level
inline constexpr int kInks = kInkHeat + kHeatLevels;     ///< number of inks

/// The ink of a grid's `cell`, a level if `heat`, else a class; kInkBackground for no value.
inline Ink ink_of(bool heat, std::uint8_t cell) {
  if (heat && cell == kNoValue) return kInkBackground;
  return static_cast<Ink>((heat ? kInkHeat : kInkClass) + cell);
}

/// How `ink`, below kInks, looks on a page of this `theme`. Heat is the cubehelix of Green 2011
/// (Bulletin of the Astronomical Society of India 39, 289).
Color color_of(Ink ink, Theme theme);

}  // namespace masque::draw
