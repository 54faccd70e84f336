// What is drawn: grids of cells with names and numbers along their sides. The caller gives values;
// how they look is decided here.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::draw {

/// Classes of cells whose meaning, and so colour and sign, is fixed. Up to kClasses − 1 are free
/// for other use.
enum Class : std::uint8_t { kBlocked, kVisible, kPartial, kOnlyA, kOnlyB, kFirstFree };
inline constexpr int kClasses = 8;

/// Levels of a heat map's cells, from least to greatest; kNoValue is left empty.
inline constexpr int kHeatLevels = 128;
inline constexpr std::uint8_t kNoValue = 255;

/// Most cells that a grid may have along a side; the caller zooms (`zoom_for`).
inline constexpr Index kMaxCells = 4096;

/// Cells row by row: classes, or levels of heat.
struct Grid {
  Index rows = 0;
  Index columns = 0;
  std::vector<std::uint8_t> cells;
  bool heat = false;

  std::uint8_t at(Index row, Index column) const {
    return cells[static_cast<std::size_t>(row * columns + column)];
  }
};

/// A grid of classes: cell(row, column) is called once for each.
template <typename Cell>
Grid class_grid(Index rows, Index columns, const Cell& cell) {
  Grid grid{.rows = rows, .columns = columns};
  grid.cells.reserve(static_cast<std::size_t>(rows * columns));
  for (Index row = 0; row < rows; ++row) {
    for (Index column = 0; column < columns; ++column) {
      grid.cells.push_back(static_cast<std::uint8_t>(cell(row, column)));
    }
  }
  return grid;
}

/// A heat map of rows·columns values, row by row: `low` and below is the least level, `high` and
/// above the greatest, NaN is empty. A range without width maps everything to the least level.
Grid heat_grid(Index rows, Index columns, std::span<const double> values, double low, double high);

/// One side of a grid.
struct Axis {
  std::string name;                 ///< "query", "key"
  std::vector<std::string> labels;  ///< none, or one for each cell: UTF-8, any length
  Index zoom = 1;                   ///< positions in one cell
  Index first = 0;                  ///< position of the first cell
  bool operator==(const Axis&) const = default;
};

/// A grid with its sides: rows go downwards.
struct Panel {
  std::string name;
  Grid grid;
  Axis rows;
  Axis columns;
};

/// What a class means in this picture.
struct LegendEntry {
  std::uint8_t cell = 0;
  std::string name;
};

/// The colour bar of heat maps.
struct HeatScale {
  std::string name;
  double low = 0;
  double high = 1;
};

/// A picture: one panel, or several side by side, which wrap.
struct Figure {
  std::string title;
  std::string description;  ///< for those who cannot see it; made from the sizes if empty
  std::vector<Panel> panels;
  Index panels_per_row = 0;  ///< 0: as many as fit
  std::vector<LegendEntry> legend;
  HeatScale heat;    ///< shown if a panel is a heat map
  std::string note;  ///< under the picture
};

/// The least zoom with which `length` positions make at most `max_cells` cells; at least 1.
Index zoom_for(Index length, Index max_cells);

/// `figure.description`, or what can be said without one.
std::string description_of(const Figure& figure);

/// Throws UsageError if a grid has more than kMaxCells cells along a side. Labels that are neither
/// none nor one per cell, and cells that are neither a class nor a level, are bugs of the caller.
void check_figure(const Figure& figure);

}  // namespace masque::draw
