#include "draw/axis_layout.hpp"

#include <algorithm>

#include "base/escape.hpp"
#include "draw/text.hpp"
#include "draw/ticks.hpp"

namespace masque::draw {

namespace {

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

}  // namespace

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

Side without_text(Side side) {
  for (Side::Mark& mark : side.marks) mark.text.clear();
  side.depth = side.numbers ? kTickLength + 1 : 0;
  side.before = side.after = 0;
  return side;
}

void add_rows(Scene& scene, const Side& side, int x, int y) {
  for (const Side::Mark& mark : side.marks) {
    if (side.numbers) scene.fills.push_back({{x - 1 - kTickLength, y + mark.at, kTickLength, 1}});
    if (mark.text.empty()) continue;
    scene.texts.push_back({mark.text, x - kLabelGap, y + mark.at, Font::kLabel, Anchor::kEnd, false,
                           side.numbers ? kInkQuiet : kInkText});
  }
}

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

}  // namespace masque::draw
