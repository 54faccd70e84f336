// How light a colour is.
#pragma once

#include <cmath>
#include <cstdint>

#include "draw/palette.hpp"

namespace masque::draw {

/// CIE L*: 0 is black, 100 is white.
inline double lightness(Color color) {
  const auto linear = [](std::uint8_t channel) {
    const double value = channel / 255.0;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  const double y =
      0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
  return y > 216.0 / 24389 ? 116 * std::cbrt(y) - 16 : y * 24389 / 27;
}

}  // namespace masque::draw
