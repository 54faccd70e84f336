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
enum Class : std::uint8_t {
  kBlocked,   ///< no pair of the cell is visible
  kVisible,   ///< all pairs are
  kPartial,   ///< some are
  kOnlyA,     ///< in the first of two masks alone
  kOnlyB,     ///< in the second alone
  kFirstFree  ///< the first class without a meaning of its own
};
/// Number of classes, the free ones included.
inline constexpr int kClasses = 8;

/// Number of levels of a heat map's cells, from 0, the least.
inline constexpr int kHeatLevels = 128;
/// In place of a level: the cell is left empty.
inline constexpr std::uint8_t kNoValue = 255;

/// Most cells that a grid may have along a side; the caller zooms (`zoom_for`).
inline constexpr Index kMaxCells = 4096;

/// Cells row by row: classes, or levels of heat.
struct Grid {
  Index rows = 0;                   ///< number of rows
  Index columns = 0;                ///< number of columns
  std::vector<std::uint8_t> cells;  ///< [rows, columns], row-major: a Class, or a level
  bool heat = false;                ///< cells are levels of heat

  /// The cell at (`row`, `column`), both from 0 and in the grid.
  std::uint8_t at(Index row, Index column) const {
    return cells[static_cast<std::size_t>(row * columns + column)];
  }
};

/// A grid of `rows` × `columns` classes: `cell`(row, column) is called once for each, row by row.
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

/// A heat map of `rows`·`columns` `values`, row by row: `low` and below is the least level, `high`
/// and above the greatest, NaN is empty. A range without width maps everything to the least level.
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
  std::string name;  ///< above it; empty: none
  Grid grid;         ///< its cells
  Axis rows;         ///< to the left
  Axis columns;      ///< above
};

/// What a class means in this picture.
struct LegendEntry {
  std::uint8_t cell = 0;  ///< a Class
  std::string name;       ///< its meaning
};

/// The colour bar of heat maps.
struct HeatScale {
  std::string name;  ///< what the values are; empty: none
  double low = 0;    ///< value of the least level
  double high = 1;   ///< value of the greatest level
};

/// A picture: one panel, or several side by side, which wrap.
struct Figure {
  std::string title;                ///< above the picture; empty: none
  std::string description;          ///< for those who cannot see it; made from the sizes if empty
  std::vector<Panel> panels;        ///< from left to right
  Index panels_per_row = 0;         ///< 0: as many as fit
  std::vector<LegendEntry> legend;  ///< empty: none
  HeatScale heat;                   ///< shown if a panel is a heat map
  std::string note;                 ///< under the picture
};

/// The least zoom with which `length` positions make at most `max_cells` cells; at least 1.
Index zoom_for(Index length, Index max_cells);

/// The description of `figure`, or what can be said without one: the names and sizes of its panels.
std::string description_of(const Figure& figure);

/// Throws UsageError if a grid of `figure` has more than kMaxCells cells along a side. Labels that
/// are neither none nor one per cell, and cells that are neither a class nor a level, are bugs of
/// the caller: std::logic_error.
void check_figure(const Figure& figure);

}  // namespace masque::draw
