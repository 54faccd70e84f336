#include "draw/mask_figure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/report.hpp"

namespace masque::draw {

namespace {

Class class_of(mask::Cover cover) {
  return cover == mask::Cover::kEmpty  ? kBlocked
         : cover == mask::Cover::kFull ? kVisible
                                       : kPartial;
}

Index zoom_of(const mask::Mask& mask, const MaskFigureRequest& request) {
  return zoom_for(std::max(mask.lengths().queries, mask.lengths().keys), request.max_cells);
}

/// The sides of a panel; labels only where each has its cell.
Panel panel_of(std::string name, Grid grid, Index zoom, const MaskFigureRequest& request) {
  const auto axis_of = [&](const std::string& axis_name, Index cells) {
    Axis axis{axis_name, {}, zoom, 0};
    if (static_cast<Index>(request.labels.size()) == cells && zoom == 1) {
      axis.labels = request.labels;
    }
    return axis;
  };
  const Axis rows = axis_of(request.row_name, grid.rows);
  const Axis columns = axis_of(request.column_name, grid.columns);
  return {std::move(name), std::move(grid), rows, columns};
}

std::string zoom_note(Index zoom) {
  return zoom == 1 ? std::string() : fmt::format("each cell is a block of {0} × {0} pairs", zoom);
}

}  // namespace

Figure mask_figure(const mask::Mask& mask, const MaskFigureRequest& request) {
  const Index zoom = zoom_of(mask, request);
  const mask::Overview overview(mask, zoom);
  Figure figure{.title = request.title};
  bool partial = false;
  Grid grid = class_grid(overview.rows(), overview.columns(), [&](Index row, Index column) {
    const Class cell = class_of(overview.cover(row, column));
    partial = partial || cell == kPartial;
    return cell;
  });
  figure.panels.push_back(panel_of("", std::move(grid), zoom, request));
  figure.legend = {{kVisible, request.visible_name}, {kBlocked, request.blocked_name}};
  if (partial) figure.legend.insert(figure.legend.begin() + 1, {kPartial, "partly"});
  figure.note = zoom_note(zoom);
  return figure;
}

Figure difference_figure(const mask::Mask& a, const mask::Mask& b, const std::string& name_a,
                         const std::string& name_b, const MaskFigureRequest& request) {
  MASQUE_CHECK(a.lengths() == b.lengths());
  const Index zoom = zoom_of(a, request);
  const mask::Overview of_a(a, zoom);
  const mask::Overview of_b(b, zoom);
  const mask::Overview only_a(a & ~b, zoom);
  const mask::Overview only_b(b & ~a, zoom);
  const auto grid = [&](const auto& cell) { return class_grid(of_a.rows(), of_a.columns(), cell); };
  bool partial = false;
  const auto plain = [&](const mask::Overview& overview) {
    return grid([&](Index row, Index column) {
      const Class cell = class_of(overview.cover(row, column));
      partial = partial || cell == kPartial;
      return cell;
    });
  };
  Figure figure{.title = request.title};
  figure.panels.push_back(panel_of("A: " + name_a, plain(of_a), zoom, request));
  figure.panels.push_back(panel_of("B: " + name_b, plain(of_b), zoom, request));
  // A difference shows however small a part of a cell it is.
  figure.panels.push_back(panel_of("difference", grid([&](Index row, Index column) {
                                     const std::uint64_t more = only_a.visible(row, column);
                                     const std::uint64_t less = only_b.visible(row, column);
                                     if (more == 0 && less == 0)
                                       return class_of(of_a.cover(row, column));
                                     return more >= less ? kOnlyA : kOnlyB;
                                   }),
                                   zoom, request));
  figure.legend = {{kVisible, "visible in both"},
                   {kBlocked, "blocked in both"},
                   {kOnlyA, "only A"},
                   {kOnlyB, "only B"}};
  if (partial) figure.legend.insert(figure.legend.begin() + 1, {kPartial, "partly"});
  figure.note = zoom_note(zoom);
  if (zoom > 1) figure.note += "; one that differs anywhere has the colour of the larger side";
  return figure;
}

}  // namespace masque::draw
