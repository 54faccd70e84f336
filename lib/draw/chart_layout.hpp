// Where the parts of a chart stand.
#pragma once

#include "draw/chart.hpp"
#include "draw/scene.hpp"

namespace masque::draw {

/// The picture of a chart; no two texts of it overlap. Each curve has as many x as y.
Scene lay_out(const Chart& chart, const Metrics& metrics);

}  // namespace masque::draw
