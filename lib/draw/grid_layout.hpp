// Where the parts of a figure stand.
#pragma once

#include "draw/scene.hpp"

namespace masque::draw {

/// The picture of a figure; no two texts of it overlap. Points into `figure`. Throws UsageError if
/// a grid is too large (`check_figure`).
Scene lay_out(const Figure& figure, const Metrics& metrics);

}  // namespace masque::draw
