#include "draw/figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::draw {

Grid heat_grid(Index rows, Index columns, std::span<const double> values, double low, double high) {
  MASQUE_CHECK(static_cast<Index>(values.size()) == rows * columns);
  Grid grid{.rows = rows, .columns = columns, .heat = true};
  grid.cells.reserve(values.size());
  for (const double value : values) {
    if (std::isnan(value)) {
      grid.cells.push_back(kNoValue);
      continue;
    }
    const double part = high > low ? (std::clamp(value, low, high) - low) / (high - low) : 0;
    grid.cells.push_back(static_cast<std::uint8_t>(std::lround(part * (kHeatLevels - 1))));
  }
  return grid;
}

Index zoom_for(Index length, Index max_cells) {
  MASQUE_CHECK(max_cells > 0);
  return std::max<Index>(1, length / max_cells + (length % max_cells > 0 ? 1 : 0));
}

std::string description_of(const Figure& figure) {
  if (!figure.description.empty()) return figure.description;
  std::string text;
  for (const Panel& panel : figure.panels) {
    if (!text.empty()) text += ' ';
    if (!panel.name.empty()) text += panel.name + ": ";
    text +=
        fmt::format("{} of {} rows", panel.grid.heat ? "a heat map" : "a grid", panel.grid.rows);
    if (!panel.rows.name.empty()) text += fmt::format(" ({})", panel.rows.name);
    text += fmt::format(" and {} columns", panel.grid.columns);
    if (!panel.columns.name.empty()) text += fmt::format(" ({})", panel.columns.name);
    text += '.';
  }
  return text.empty() ? "An empty picture." : text;
}

void check_figure(const Figure& figure) {
  for (const Panel& panel : figure.panels) {
    const Grid& grid = panel.grid;
    if (std::max(grid.rows, grid.columns) > kMaxCells) {
      throw UsageError(
          fmt::format("the picture has {} x {} cells, expected at most {} on each side", grid.rows,
                      grid.columns, kMaxCells));
    }
    MASQUE_CHECK(grid.rows >= 0 && grid.columns >= 0);
    MASQUE_CHECK(static_cast<Index>(grid.cells.size()) == grid.rows * grid.columns);
    const auto is_good = [&](std::uint8_t cell) {
      return grid.heat ? cell < kHeatLevels || cell == kNoValue : cell < kClasses;
    };
    MASQUE_CHECK(std::all_of(grid.cells.begin(), grid.cells.end(), is_good));
    const auto fits = [](const Axis& axis, Index cells) {
      return axis.zoom > 0 && axis.first >= 0 &&
             (axis.labels.empty() || static_cast<Index>(axis.labels.size()) == cells);
    };
    MASQUE_CHECK(fits(panel.rows, grid.rows) && fits(panel.columns, grid.columns));
  }
  for (const LegendEntry& entry : figure.legend) MASQUE_CHECK(entry.cell < kClasses);
}

}  // namespace masque::draw
