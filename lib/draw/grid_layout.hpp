// Where the parts of a figure stand.
#pragma once

#include "draw/scene.hpp"

namespace masque::draw {

/// The picture of `figure`, with texts of the sizes of `metrics`; no two of them overlap. Points
/// into `figure`, which must outlive it. Throws UsageError if a grid is too large (`check_figure`).
Scene lay_out(const Figure& figure, const Metrics& metrics);

}  // namespace masque::draw
