// Pictures as PNG, for a light page.
#pragma once

#include <cstddef>
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

}  // namespace masque::draw
