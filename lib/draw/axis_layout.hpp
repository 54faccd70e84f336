// Names or numbers along one side of a grid.
#pragma once

#include "draw/scene.hpp"

namespace masque::draw {

/// Length of a tick mark in pixels.
inline constexpr int kTickLength = 4;

/// The labels of one side. Distances are in pixels.
struct Side {
  /// A label or a number.
  struct Mark {
    int at = 0;        ///< its middle, from the grid's corner along the side
    std::string text;  ///< safe to print; empty: a tick mark alone
  };
  std::vector<Mark> marks;  ///< in the order of their places
  bool numbers = false;     ///< with tick marks
  bool upright = false;     ///< columns only
  int depth = 0;            ///< room next to the grid
  int before = 0;           ///< room beyond the first cell, along the side
  int after = 0;            ///< room beyond the last cell
};

/// Labels of rows, which stand to the left of `cells` rows of `cell` pixels: those of `axis` where
/// the rows are high enough for a line of `metrics`, else numbers of positions.
Side plan_rows(const Axis& axis, Index cells, int cell, const Metrics& metrics);

/// Labels of columns, which stand above `cells` columns of `cell` pixels, as for rows: those of
/// `axis`, upright where the columns are too narrow for them in `metrics`, or numbers.
Side plan_columns(const Axis& axis, Index cells, int cell, const Metrics& metrics);

/// `side` without the texts of its labels: for a panel whose neighbour has the same.
Side without_text(Side side);

/// Adds the labels of rows to `scene`, for a grid whose corner is at (`x`, `y`); `side` is that of
/// plan_rows.
void add_rows(Scene& scene, const Side& side, int x, int y);
/// Adds the labels of columns to `scene`, for a grid whose corner is at (`x`, `y`); `side` is that
/// of plan_columns.
void add_columns(Scene& scene, const Side& side, int x, int y);

}  // namespace masque::draw
