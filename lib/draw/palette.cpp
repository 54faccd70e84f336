#include "draw/palette.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.hpp"

namespace masque::draw {

namespace {

constexpr Color rgb(std::uint32_t value) {
  return {static_cast<std::uint8_t>(value >> 16), static_cast<std::uint8_t>(value >> 8 & 0xFF),
          static_cast<std::uint8_t>(value & 0xFF)};
}

struct Pair {
  Color light;
  Color dark;
};

// In the order of the inks. Classes: blocked, visible, partly visible, only in A, only in B, free.
constexpr std::array<Pair, kInkHeat> kColors = {{
    {rgb(0xffffff), rgb(0x14171c)},
    {rgb(0x1f2328), rgb(0xe6e8eb)},
    {rgb(0x59636e), rgb(0x9aa4b0)},
    {rgb(0x9aa3ad), rgb(0x5b6570)},
    {rgb(0xe3e7eb), rgb(0x2a2f36)},
    {},
    {},
    {},
    {rgb(0xeceff3), rgb(0x2b3038)},
    {rgb(0x2c68b2), rgb(0x7fb8f5)},
    {rgb(0xa5c3e6), rgb(0x41648c)},
    {rgb(0xe8851a), rgb(0xcf781a)},
    {rgb(0x6d0f52), rgb(0xffd9ee)},
    {rgb(0x3fc1a6), rgb(0x3ab29a)},
    {rgb(0x8a7f1e), rgb(0xd6c95a)},
    {rgb(0x6b4a2a), rgb(0x5f4228)},
    {rgb(0x14325c), rgb(0xcfe4ff)},
    {rgb(0xa3302a), rgb(0xf59a8c)},
    {rgb(0x3a8f5c), rgb(0x3fa56b)},
    {rgb(0xe5a02e), rgb(0xa3702a)},
}};

/// The cubehelix of Green 2011 (A colour scheme for the display of astronomical intensity images,
/// Bulletin of the Astronomical Society of India 39, 289): a spiral around the greys whose
/// perceived brightness only grows. Start 0, −0.4 rotations, hue 1, gamma 1: navy, teal, pale
/// green.
Color cubehelix(double grey) {
  const double angle = 2 * std::numbers::pi * (1 - 0.4 * grey);
  const double radius = grey * (1 - grey) / 2;
  const auto channel = [&](double of_cos, double of_sin) {
    const double value = grey + radius * (of_cos * std::cos(angle) + of_sin * std::sin(angle));
    return static_cast<std::uint8_t>(std::lround(255 * std::clamp(value, 0.0, 1.0)));
  };
  return {channel(-0.14861, 1.78277), channel(-0.29227, -0.90649), channel(1.97294, 0)};
}

}  // namespace

Color color_of(Ink ink, Theme theme) {
  MASQUE_CHECK(ink < kInks);
  if (ink < kInkHeat) return theme == Theme::kLight ? kColors[ink].light : kColors[ink].dark;
  // The least value is near the background, the greatest far from it.
  const double part = static_cast<double>(ink - kInkHeat) / (kHeatLevels - 1);
  return cubehelix(theme == Theme::kLight ? 0.94 - 0.86 * part : 0.12 + 0.83 * part);
}

}  // namespace masque::draw
