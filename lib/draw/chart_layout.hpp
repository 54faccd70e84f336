// Where the parts of a chart stand.
#pragma once

#include "draw/chart.hpp"
#include "draw/scene.hpp"

namespace masque::draw {

/// The picture of `chart`, with texts of the sizes of `metrics`; no two of them overlap. Does not
/// refer to `chart`. Throws std::logic_error for a curve that has not as many y, or ends of a band,
/// as x.
Scene lay_out(const Chart& chart, const Metrics& metrics);

}  // namespace masque::draw
