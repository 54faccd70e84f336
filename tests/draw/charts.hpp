// Charts that several tests draw.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "draw/chart.hpp"

namespace masque::draw {

inline Curve line_between(double x0, double y0, double x1, double y1) {
  return {"from here to there", {x0, x1}, {y0, y1}};
}

/// Charts of all ranges, with and without logarithmic axes.
inline std::vector<Chart> many_charts() {
  const double nan = std::nan("");
  std::vector<std::vector<Curve>> bundles = {
      {},
      {{"empty", {}, {}}},
      {{"one point", {3}, {4}}},
      {{"level", {0, 1, 2}, {5, 5, 5}}},
      {line_between(0, 0, 1, 1)},
      {line_between(-1e6, -1e-6, 1e6, 1e-6)},
      {line_between(1e-300, 1e300, 1, 1e-300)},
      {line_between(1e15, 1e15, 1e15 + 8, 1e15 + 8)},
      {line_between(123456.789, 999999.5, 123457.123, 1000000.5)},
      {line_between(-1e308, -1e308, 1e308, 1e308)},
      {{"holes", {1, 2, 3, 4, 5, 6}, {nan, 2, 0, -4, std::numeric_limits<double>::infinity(), 6}}},
  };
  std::vector<Curve> many;
  for (int i = 0; i < 15; ++i) many.push_back(line_between(1, i + 1, 1000, 2 * i + 1));
  bundles.push_back(many);
  std::vector<Chart> charts;
  for (const std::vector<Curve>& curves : bundles) {
    for (const bool log_x : {false, true}) {
      for (const bool log_y : {false, true}) {
        charts.push_back({.title = "A chart <&> of something",
                          .x = {"the name of the horizontal axis", log_x},
                          .y = {"the name of the upright axis, which is much longer", log_y},
                          .curves = curves,
                          .note = "a note"});
      }
    }
  }
  return charts;
}

}  // namespace masque::draw
