// No text stands on another or on a grid, and none is cropped, with the fonts of either writer.
#include <algorithm>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "draw/chart_layout.hpp"
#include "draw/charts.hpp"
#include "draw/figures.hpp"
#include "draw/grid_layout.hpp"

namespace masque::draw {
namespace {

bool overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

/// Everything that is wrong with where things stand.
std::string faults(const Scene& scene, const Metrics& metrics) {
  std::string found;
  std::vector<Box> boxes;
  for (const Text& text : scene.texts) boxes.push_back(box_of(text, metrics));
  std::vector<Box> grids;
  for (const Cells& cells : scene.cells) {
    grids.push_back({cells.x, cells.y, static_cast<int>(cells.grid->columns) * cells.width,
                     static_cast<int>(cells.grid->rows) * cells.height});
  }
  const Box page{0, 0, scene.width, scene.height};
  const auto is_inside = [&](const Box& box) {
    return box.x >= page.x && box.y >= page.y && box.right() <= page.right() &&
           box.bottom() <= page.bottom();
  };
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::string& text = scene.texts[i].text;
    if (!is_inside(boxes[i])) found += fmt::format("'{}' is cropped\n", text);
    for (const Box& grid : grids) {
      if (overlap(boxes[i], grid)) found += fmt::format("'{}' is on a grid\n", text);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!overlap(boxes[i], boxes[j])) continue;
      found += fmt::format("'{}' is on '{}'\n", text, scene.texts[j].text);
    }
  }
  for (std::size_t i = 0; i < grids.size(); ++i) {
    if (!is_inside(grids[i])) found += "a grid is cropped\n";
    for (std::size_t j = 0; j < i; ++j) {
      if (overlap(grids[i], grids[j])) found += "grids overlap\n";
    }
  }
  for (const Fill& fill : scene.fills) {
    if (!is_inside(fill.box)) found += "a shape is cropped\n";
  }
  for (const Line& line : scene.lines) {
    for (const Point& p : line.points) {
      if (p.x < 1 || p.y < 1 || p.x > scene.width - 1 || p.y > scene.height - 1) {
        found += "a curve is cropped\n";
      }
    }
  }
  return found;
}

TEST_CASE("no text of a figure stands on another or on a grid") {
  int number = 0;
  for (const Figure& figure : many_figures()) {
    CAPTURE(number++);
    CAPTURE(description_of(figure));
    for (const Metrics& metrics : {kSvgMetrics, kPngMetrics}) {
      CHECK(faults(lay_out(figure, metrics), metrics) == "");
    }
  }
}

TEST_CASE("no text of a chart stands on another") {
  int number = 0;
  for (const Chart& chart : many_charts()) {
    CAPTURE(number++);
    for (const Metrics& metrics : {kSvgMetrics, kPngMetrics}) {
      CHECK(faults(lay_out(chart, metrics), metrics) == "");
    }
  }
}

TEST_CASE("a point without neighbours is a square that can be seen") {
  Chart chart{.curves = {{"one", {3}, {4}}, line_between(1, 1, 5, 5)}};
  const Scene scene = lay_out(chart, kSvgMetrics);
  REQUIRE(scene.lines.size() == 4);  // two of them in the legend
  const auto [left, right] = std::ranges::minmax(scene.lines[0].points, {}, &Point::x);
  const auto [top, bottom] = std::ranges::minmax(scene.lines[0].points, {}, &Point::y);
  CHECK(right.x - left.x == doctest::Approx(4));
  CHECK(bottom.y - top.y == doctest::Approx(4));
  CHECK(scene.lines[1].points.size() == 2);
}

TEST_CASE("labels are all there where they have room, else numbers that are round") {
  const auto labels = [](const Figure& figure) {
    std::vector<std::string> texts;
    for (const Text& text : lay_out(figure, kSvgMetrics).texts) {
      if (text.font == Font::kLabel) texts.push_back(text.text);
    }
    return texts;
  };
  Figure figure = figure_of(causal(3, 3));
  for (Axis* axis : {&figure.panels[0].rows, &figure.panels[0].columns}) {
    axis->labels = {"a", "b", "c"};
  }
  CHECK(labels(figure) == std::vector<std::string>{"a", "b", "c", "a", "b", "c"});
  CHECK(labels(figure_of(causal(2, 3))) == std::vector<std::string>{"0", "1", "0", "1", "2"});

  figure = labelled(400, 400);
  const std::vector<std::string> numbers = labels(figure);
  CHECK(numbers.size() == 16);
  CHECK(numbers[1] == "50");

  figure.panels[0].rows.zoom = figure.panels[0].columns.zoom = 10;
  CHECK(labels(figure)[1] == "500");
  figure.panels[0].rows.first = 250;
  CHECK(labels(figure)[0] == "500");
}

TEST_CASE("panels that have the same rows have their labels once") {
  const Scene scene = lay_out(difference(4), kSvgMetrics);
  const auto count = [&](const std::string& wanted) {
    return std::count_if(scene.texts.begin(), scene.texts.end(),
                         [&](const Text& text) { return text.text == wanted; });
  };
  CHECK(count("query") == 1);
  CHECK(count("key") == 3);
  CHECK(count("3") == 1 + 3);
}

TEST_CASE("panels wrap, and stand in as many columns as requested") {
  const auto corners = [](const Figure& figure) {
    std::vector<std::pair<int, int>> found;
    for (const Cells& cells : lay_out(figure, kSvgMetrics).cells) {
      found.emplace_back(cells.x, cells.y);
    }
    return found;
  };
  Figure figure = difference(4);
  auto three = corners(figure);
  CHECK(three[0].second == three[2].second);
  figure.panels_per_row = 2;
  auto two = corners(figure);
  CHECK(two[0].second == two[1].second);
  CHECK(two[2].second > two[0].second);
  CHECK(two[2].first == two[0].first);
  figure.panels_per_row = 0;
  for (int i = 0; i < 20; ++i) figure.panels.push_back(figure.panels[0]);
  CHECK(lay_out(figure, kSvgMetrics).width < 1250);
  CHECK(corners(figure).back().second > three[0].second);
}

TEST_CASE("cells are square unless one side would have no cells to see") {
  const auto cell = [](Index rows, Index columns) {
    const Figure figure = figure_of(causal(rows, columns));
    const Cells cells = lay_out(figure, kSvgMetrics).cells.at(0);
    return std::pair(cells.width, cells.height);
  };
  CHECK(cell(1, 1) == std::pair(22, 22));
  CHECK(cell(16, 16) == std::pair(22, 22));
  CHECK(cell(100, 50) == std::pair(4, 4));
  CHECK(cell(1000, 1000) == std::pair(1, 1));
  CHECK(cell(1, 1000) == std::pair(1, 22));
}

}  // namespace
}  // namespace masque::draw
