// Pictures as SVG: text that scales, for light and dark pages.
#pragma once

#include <string>

#include "draw/chart.hpp"
#include "draw/figure.hpp"

namespace masque::draw {

/// `figure` as one `<svg>` document in UTF-8: no scripts, no links, the same bytes for the same
/// picture. Its styles and ids bear a name made from its content, so that several can stand in one
/// page. Equal cells that touch are one shape: a causal mask of 1000 × 1000 takes less than 50 kB.
/// Throws as check_figure.
std::string svg(const Figure& figure);
/// `chart` as one `<svg>` document in the same way.
std::string svg(const Chart& chart);

}  // namespace masque::draw
