#include "draw/grid_layout.hpp"

#include <algorithm>

#include "base/divide.hpp"
#include "base/escape.hpp"
#include "draw/page.hpp"
#include "draw/scene.hpp"
#include "draw/text.hpp"
#include "draw/ticks.hpp"

namespace masque::draw {

namespace {

// Names or numbers along one side of a grid.

/// Length of a tick mark in pixels.
constexpr int kTickLength = 4;

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

constexpr int kLabelColumns = 18;
constexpr int kLabelGap = kTickLength + 3;
/// Numbers next to cells that are too small to be counted are thinned out further than they must
/// be.
constexpr int kSmallCell = 10;
constexpr int kSparse = 40;

std::vector<Side::Mark> token_marks(const Axis& axis, int cell) {
  std::vector<Side::Mark> marks;
  for (std::size_t i = 0; i < axis.labels.size(); ++i) {
    marks.push_back(
        {static_cast<int>(i) * cell + cell / 2, shorten(escape(axis.labels[i]), kLabelColumns)});
  }
  return marks;
}

/// Numbers of positions, `distance` pixels apart or more.
std::vector<Side::Mark> number_marks(const Axis& axis, Index cells, int cell, int distance) {
  if (cell < kSmallCell) distance = std::max(distance, kSparse);
  const double pixels = static_cast<double>(cell) / static_cast<double>(axis.zoom);
  const Index step = round_step(distance / pixels);
  const Index end = axis.first + cells * axis.zoom;
  Index position = axis.first / step * step;
  if (position < axis.first) position += step;
  std::vector<Side::Mark> marks;
  for (; position < end; position += step) {
    const double at = (static_cast<double>(position - axis.first) + 0.5) * pixels;
    marks.push_back({static_cast<int>(at), std::to_string(position)});
  }
  return marks;
}

int widest(const std::vector<Side::Mark>& marks, const Metrics& metrics) {
  int width = 0;
  for (const Side::Mark& mark : marks) {
    width = std::max(width, metrics.width(mark.text, Font::kLabel));
  }
  return width;
}

/// Room beyond the grid for marks that take `thickness(mark)` along the side.
template <typename Thickness>
void make_room(Side& side, int length, const Thickness& thickness) {
  for (const Side::Mark& mark : side.marks) {
    const int half = (thickness(mark) + 1) / 2;
    side.before = std::max(side.before, half - mark.at);
    side.after = std::max(side.after, mark.at + half - length);
  }
}

/// Labels of rows, which stand to the left of `cells` rows of `cell` pixels: those of `axis` where
/// the rows are high enough for a line of `metrics`, else numbers of positions.
Side plan_rows(const Axis& axis, Index cells, int cell, const Metrics& metrics) {
  Side side;
  const int line = metrics.line(Font::kLabel);
  side.numbers = axis.labels.empty() || cell < line;
  side.marks = side.numbers ? number_marks(axis, cells, cell, line + 2) : token_marks(axis, cell);
  if (side.marks.empty()) return side;
  side.depth = widest(side.marks, metrics) + kLabelGap;
  make_room(side, static_cast<int>(cells) * cell, [&](const Side::Mark&) { return line; });
  return side;
}

/// Labels of columns, which stand above `cells` columns of `cell` pixels, as for rows: those of
/// `axis`, upright where the columns are too narrow for them in `metrics`, or numbers.
Side plan_columns(const Axis& axis, Index cells, int cell, const Metrics& metrics) {
  Side side;
  const int line = metrics.line(Font::kLabel);
  side.numbers = axis.labels.empty() || cell < line;
  const auto width = [&](const Side::Mark& mark) { return metrics.width(mark.text, Font::kLabel); };
  if (side.numbers) {
    const std::string last = std::to_string(axis.first + cells * axis.zoom);
    side.marks = number_marks(axis, cells, cell, metrics.width(last, Font::kLabel) + 8);
  } else {
    side.marks = token_marks(axis, cell);
    side.upright = widest(side.marks, metrics) + 4 > cell;
  }
  if (side.marks.empty()) return side;
  // One pixel more than the labels of rows, which may reach above the first row.
  side.depth = (side.upright ? widest(side.marks, metrics) : line) + kLabelGap + 1;
  const int length = static_cast<int>(cells) * cell;
  if (side.upright) {
    make_room(side, length, [&](const Side::Mark&) { return line; });
  } else {
    make_room(side, length, width);
  }
  return side;
}

/// `side` without the texts of its labels: for a panel whose neighbour has the same.
Side without_text(Side side) {
  for (Side::Mark& mark : side.marks) mark.text.clear();
  side.depth = side.numbers ? kTickLength + 1 : 0;
  side.before = side.after = 0;
  return side;
}

/// Adds the labels of rows to `scene`, for a grid whose corner is at (`x`, `y`); `side` is that of
/// plan_rows.
void add_rows(Scene& scene, const Side& side, int x, int y) {
  for (const Side::Mark& mark : side.marks) {
    if (side.numbers) scene.fills.push_back({{x - 1 - kTickLength, y + mark.at, kTickLength, 1}});
    if (mark.text.empty()) continue;
    scene.texts.push_back({mark.text, x - kLabelGap, y + mark.at, Font::kLabel, Anchor::kEnd, false,
                           side.numbers ? kInkQuiet : kInkText});
  }
}

/// Adds the labels of columns to `scene`, for a grid whose corner is at (`x`, `y`); `side` is that
/// of plan_columns.
void add_columns(Scene& scene, const Side& side, int x, int y) {
  const int half = (side.depth - kLabelGap) / 2;
  for (const Side::Mark& mark : side.marks) {
    if (side.numbers) scene.fills.push_back({{x + mark.at, y - 1 - kTickLength, 1, kTickLength}});
    if (mark.text.empty()) continue;
    const int at = side.upright ? y - kLabelGap : y - kLabelGap - 1 - half;
    scene.texts.push_back({mark.text, x + mark.at, at, Font::kLabel,
                           side.upright ? Anchor::kStart : Anchor::kMiddle, side.upright,
                           side.numbers ? kInkQuiet : kInkText});
  }
}

// Panels.

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
      size = std::min<Index>(kLargestCell, divide_up(kLeastSide, cells));
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
