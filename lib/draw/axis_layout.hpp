// Names or numbers along one side of a grid.
#pragma once

#include "draw/scene.hpp"

namespace masque::draw {

inline constexpr int kTickLength = 4;

/// The labels of one side. Distances are in pixels.
struct Side {
  struct Mark {
    int at = 0;  ///< from the grid's corner along the side
    std::string text;
  };
  std::vector<Mark> marks;
  bool numbers = false;  ///< with tick marks
  bool upright = false;  ///< columns only
  int depth = 0;         ///< room next to the grid
  int before = 0;        ///< room beyond the first cell, along the side
  int after = 0;         ///< room beyond the last cell
};

/// Labels of rows, which stand to the left: the axis's where the cells are high enough, else
/// numbers of positions.
Side plan_rows(const Axis& axis, Index cells, int cell, const Metrics& metrics);

/// Labels of columns, which stand above: upright where the cells are too narrow for them.
Side plan_columns(const Axis& axis, Index cells, int cell, const Metrics& metrics);

/// The labels without their text: for a panel whose neighbour has the same.
Side without_text(Side side);

void add_rows(Scene& scene, const Side& side, int x, int y);
void add_columns(Scene& scene, const Side& side, int x, int y);

}  // namespace masque::draw
