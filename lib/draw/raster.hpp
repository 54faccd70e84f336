// A scene as dots, each an ink or an ink thinned by the background.
#pragma once

#include <vector>

#include "draw/scene.hpp"

namespace masque::draw {

/// Curves have soft edges: for each of their inks, this many steps from the background to it.
inline constexpr int kBlends = 8;
inline constexpr int kRasterColors = kInks + kCurveInks * kBlends;
static_assert(kRasterColors <= 256);

struct Raster {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> dots;  ///< row by row; below kRasterColors

  std::uint8_t at(int x, int y) const {
    return dots[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                static_cast<std::size_t>(x)];
  }
};

/// Draws with kPngMetrics; a pixel of the scene becomes scale × scale dots.
Raster rasterize(const Scene& scene, int scale);

/// The colour of a dot on a light page.
Color raster_color(int dot);

}  // namespace masque::draw
