#include "draw/grid_layout.hpp"

#include <algorithm>

#include "base/escape.hpp"
#include "draw/axis_layout.hpp"
#include "draw/page.hpp"
#include "draw/text.hpp"

namespace masque::draw {

namespace {

constexpr int kLargestCell = 22;
constexpr int kLeastSide = 40;      ///< of a grid, in pixels, where the cells can grow
constexpr int kLargestSide = 1200;  ///< to which labels may blow up a grid
constexpr int kMostLabels = 80;     ///< cells that grow until they can have labels
constexpr int kPanelGap = 24;
constexpr int kRowWidth = 1150;  ///< where a row of panels wraps
constexpr int kNameWidth = 140;  ///< that a name may have next to a smaller grid
constexpr int kNameGap = 3;      ///< below a name
constexpr int kSeparated = 7;    ///< cells from this size on have gaps

struct CellSize {
  int width = 1;
  int height = 1;
};

/// Cells as square and as large as is good for all panels.
CellSize cell_size(const Figure& figure, const Metrics& metrics) {
  Index rows = 1;
  Index columns = 1;
  bool row_labels = false;
  bool column_labels = false;
  for (const Panel& panel : figure.panels) {
    rows = std::max(rows, panel.grid.rows);
    columns = std::max(columns, panel.grid.columns);
    row_labels |= !panel.rows.labels.empty();
    column_labels |= !panel.columns.labels.empty();
  }
  const std::size_t panels = figure.panels.size();
  const Index target = panels <= 1 ? 480 : panels <= 3 ? 320 : 200;
  const Index common = std::clamp<Index>(target / std::max(rows, columns), 1, kLargestCell);
  const auto side = [&](Index cells, bool labels) {
    Index size = common;
    if (labels && cells <= kMostLabels) size = std::max<Index>(size, metrics.line(Font::kLabel));
    if (cells * size < kLeastSide) {
      size = std::min<Index>(kLargestCell, (kLeastSide + cells - 1) / cells);
    }
    return static_cast<int>(size);
  };
  CellSize size{side(columns, column_labels), side(rows, row_labels)};
  const int larger = std::max(size.width, size.height);
  if (larger * std::max(rows, columns) <= kLargestSide) size = {larger, larger};
  return size;
}

/// One panel before it has a place; the origin is the grid's corner.
struct Plan {
  const Panel* panel = nullptr;
  CellSize cell;
  Side rows;
  Side columns;
  std::string name;
  std::string row_name;
  std::string column_name;
  int width = 0;  ///< of the grid
  int height = 0;
  int above = 1;  ///< room for the labels of columns
  int left = 0;   ///< room around it
  int top = 0;
  int right = 1;
  int bottom = 1;
};

Plan plan_panel(const Panel& panel, CellSize cell, bool shares_rows, const Metrics& metrics) {
  Plan plan{.panel = &panel, .cell = cell};
  const Grid& grid = panel.grid;
  plan.rows = plan_rows(panel.rows, grid.rows, cell.height, metrics);
  plan.columns = plan_columns(panel.columns, grid.columns, cell.width, metrics);
  plan.width = static_cast<int>(grid.columns) * cell.width;
  plan.height = static_cast<int>(grid.rows) * cell.height;
  if (grid.cells.empty()) {
    plan.width = std::max(plan.width, 2 * kLeastSide);
    plan.height = std::max(plan.height, kLeastSide);
  }
  const int line = metrics.line(Font::kText);
  const auto name = [&](const std::string& text, int side) {
    return shorten(escape(text), metrics.columns(std::max(side, kNameWidth), Font::kText));
  };
  plan.name = name(panel.name, plan.width);
  plan.column_name = name(panel.columns.name, plan.width);
  if (shares_rows) {
    plan.rows = without_text(std::move(plan.rows));
  } else {
    plan.row_name = name(panel.rows.name, plan.height);
  }

  const auto beyond = [&](const std::string& text, int side) {
    return std::max(0, (metrics.width(text, Font::kText) - side + 1) / 2);
  };
  const int sideways =
      std::max(beyond(plan.name, plan.width), beyond(plan.column_name, plan.width));
  const int upwards = beyond(plan.row_name, plan.height);
  plan.left = std::max({1, plan.rows.depth, plan.columns.before, sideways});
  if (!plan.row_name.empty()) plan.left += line + 4;
  plan.right = std::max({1, plan.columns.after, sideways});
  // Labels of rows may reach above the first one, where names are wider than the grid.
  plan.above = std::max({1, plan.columns.depth, plan.rows.before + 1});
  plan.top = plan.above;
  for (const std::string* text : {&plan.column_name, &plan.name}) {
    if (!text->empty()) plan.top += line + kNameGap;
  }
  plan.top = std::max(plan.top, upwards);
  plan.bottom = std::max({1, plan.rows.after, upwards});
  return plan;
}

/// Lines of background between cells, so that they can be counted. Heat maps are read as a whole.
void add_gaps(Scene& scene, const Plan& plan, int x, int y) {
  if (plan.panel->grid.heat) return;
  if (std::min(plan.cell.width, plan.cell.height) < kSeparated) return;
  for (int at = plan.cell.width; at < plan.width; at += plan.cell.width) {
    scene.fills.push_back({{x + at - 1, y, 1, plan.height}, kInkBackground});
  }
  for (int at = plan.cell.height; at < plan.height; at += plan.cell.height) {
    scene.fills.push_back({{x, y + at - 1, plan.width, 1}, kInkBackground});
  }
}

/// The grid's corner is at (x, y).
void add_panel(Scene& scene, const Plan& plan, int x, int y, const Metrics& metrics) {
  const int line = metrics.line(Font::kText);
  const int middle = x + plan.width / 2;
  if (plan.panel->grid.cells.empty()) {
    scene.texts.push_back(
        {"empty", middle, y + plan.height / 2, Font::kText, Anchor::kMiddle, false, kInkQuiet});
  } else {
    scene.cells.push_back({x, y, plan.cell.width, plan.cell.height, &plan.panel->grid});
    add_gaps(scene, plan, x, y);
  }
  add_frame(scene, {x, y, plan.width, plan.height});
  add_rows(scene, plan.rows, x, y);
  add_columns(scene, plan.columns, x, y);
  int above = y - plan.above;
  for (const std::string* name : {&plan.column_name, &plan.name}) {
    if (name->empty()) continue;
    above -= line / 2 + kNameGap;
    scene.texts.push_back({.text = *name, .x = middle, .y = above, .anchor = Anchor::kMiddle});
    above -= line - line / 2;
  }
  if (plan.row_name.empty()) return;
  scene.texts.push_back({.text = plan.row_name,
                         .x = x - plan.left + line / 2,
                         .y = y + plan.height / 2,
                         .anchor = Anchor::kMiddle,
                         .upright = true});
}

/// A row of panels, their grids aligned at the top; returns where it ends.
int add_row(Scene& scene, const std::vector<Plan>& row, int y, const Metrics& metrics) {
  int top = 0;
  int bottom = 0;
  for (const Plan& plan : row) {
    top = std::max(top, plan.top);
    bottom = std::max(bottom, plan.height + plan.bottom);
  }
  int x = 0;
  for (const Plan& plan : row) {
    add_panel(scene, plan, x + plan.left, y + top, metrics);
    x += plan.left + plan.width + plan.right;
    scene.width = std::max(scene.width, x);
    x += kPanelGap;
  }
  return y + top + bottom;
}

}  // namespace

Scene lay_out(const Figure& figure, const Metrics& metrics) {
  check_figure(figure);
  const CellSize cell = cell_size(figure, metrics);
  Scene body;
  Page page{.title = figure.title, .note = figure.note};
  std::vector<Plan> row;
  int x = 0;
  for (const Panel& panel : figure.panels) {
    const bool shares = !row.empty() && row.back().panel->rows == panel.rows &&
                        row.back().panel->grid.rows == panel.grid.rows;
    Plan plan = plan_panel(panel, cell, shares, metrics);
    const bool is_full = figure.panels_per_row > 0
                             ? static_cast<Index>(row.size()) == figure.panels_per_row
                             : x + plan.left + plan.width + plan.right > kRowWidth;
    if (is_full && !row.empty()) {
      body.height = add_row(body, row, body.height, metrics) + kPanelGap;
      row.clear();
      x = 0;
      if (shares) plan = plan_panel(panel, cell, false, metrics);
    }
    x += plan.left + plan.width + plan.right + kPanelGap;
    row.push_back(std::move(plan));
    if (panel.grid.heat) page.heat = &figure.heat;
  }
  body.height = add_row(body, row, body.height, metrics);
  for (const LegendEntry& entry : figure.legend) {
    page.legend.push_back({entry.name, ink_of(false, entry.cell)});
  }
  Scene scene = finish_page(std::move(body), page, metrics);
  scene.title = escape(figure.title);
  scene.description = escape(description_of(figure));
  return scene;
}

}  // namespace masque::draw
