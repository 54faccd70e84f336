#include "map_figure.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace masque::attn_probe {

namespace {

/// 1, or the largest weight if normalizers give more.
double greatest(double so_far, const std::vector<double>& values) {
  for (const double value : values) {
    if (std::isfinite(value)) so_far = std::max(so_far, value);
  }
  return so_far;
}

}  // namespace

std::vector<double> pooled(MatrixView<const double> weights, Index zoom) {
  const Index rows = (weights.rows + zoom - 1) / zoom;
  const Index columns = (weights.columns + zoom - 1) / zoom;
  std::vector<double> cells(static_cast<std::size_t>(rows * columns), 0);
  for (Index i = 0; i < weights.rows; ++i) {
    for (Index j = 0; j < weights.columns; ++j) {
      double& cell = cells[static_cast<std::size_t>(i / zoom * columns + j / zoom)];
      if (!(weights.at(i, j) <= cell)) cell = weights.at(i, j);
    }
  }
  return cells;
}

draw::Figure head_figure(MatrixView<const double> weights, const std::vector<std::string>& labels,
                         Index zoom) {
  const std::vector<double> cells = pooled(weights, zoom);
  const Index rows = (weights.rows + zoom - 1) / zoom;
  const Index columns = (weights.columns + zoom - 1) / zoom;
  draw::Figure figure;
  figure.heat = {"weight", 0, greatest(0, cells)};
  draw::Panel panel;
  panel.grid = draw::heat_grid(rows, columns, cells, 0, figure.heat.high);
  panel.rows = {
      .name = "query", .labels = zoom == 1 ? labels : std::vector<std::string>{}, .zoom = zoom};
  panel.columns = {.name = "key", .labels = panel.rows.labels, .zoom = zoom};
  if (zoom > 1) figure.note = fmt::format("a cell is the largest of {} × {} weights", zoom, zoom);
  figure.panels.push_back(std::move(panel));
  return figure;
}

draw::Figure page_figure(const std::vector<SmallMap>& maps, Index side, Index zoom,
                         Index heads_per_row, const std::vector<std::string>& labels) {
  draw::Figure figure;
  double high = 0;
  for (const SmallMap& map : maps) high = greatest(high, map.cells);
  figure.heat = {"weight", 0, high};
  figure.panels_per_row = heads_per_row;
  figure.panels.reserve(maps.size());
  for (const SmallMap& map : maps) {
    draw::Panel panel;
    panel.name = fmt::format("{}.{}", map.layer, map.head);
    panel.grid = draw::heat_grid(side, side, map.cells, 0, high);
    if (zoom == 1) panel.rows.labels = panel.columns.labels = labels;
    panel.rows.zoom = zoom;
    panel.columns.zoom = zoom;
    figure.panels.push_back(std::move(panel));
  }
  figure.note = zoom > 1
                    ? fmt::format("layer.head; rows are queries; a cell is the largest of {} × {}",
                                  zoom, zoom)
                    : "layer.head; rows are queries, columns are keys";
  return figure;
}

}  // namespace masque::attn_probe
