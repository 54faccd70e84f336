// A scene as dots, each an ink or an ink thinned by the background.
#pragma once

#include <vector>

#include "draw/scene.hpp"

namespace masque::draw {

/// Curves have soft edges: for each of their inks, this many steps from the background to it.
inline constexpr int kBlends = 8;
/// Number of different dots: the inks, then kBlends steps of each curve's ink.
inline constexpr int kRasterColors = kInks + kCurveInks * kBlends;
static_assert(kRasterColors <= 256);

/// A picture of dots.
struct Raster {
  int width = 0;                   ///< dots of a row
  int height = 0;                  ///< number of rows
  std::vector<std::uint8_t> dots;  ///< [height, width], row-major; below kRasterColors

  /// The dot at (`x`, `y`), in the picture, `y` from the top.
  std::uint8_t at(int x, int y) const {
    return dots[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                static_cast<std::size_t>(x)];
  }
};

/// Draws `scene`, which was laid out with kPngMetrics; a pixel of it becomes `scale` × `scale`
/// dots.
Raster rasterize(const Scene& scene, int scale);

/// The colour of `dot`, from 0 and below kRasterColors, on a light page.
Color raster_color(int dot);

}  // namespace masque::draw
