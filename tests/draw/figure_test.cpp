// Zoom, heat maps as levels, and what is refused.
#include "draw/figure.hpp"

#include <limits>
#include <stdexcept>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "draw/figures.hpp"
#include "draw/svg.hpp"
#include "draw/terminal.hpp"

namespace masque::draw {
namespace {

TEST_CASE("the zoom is the least with which everything fits") {
  CHECK(zoom_for(0, 10) == 1);
  CHECK(zoom_for(10, 10) == 1);
  CHECK(zoom_for(11, 10) == 2);
  CHECK(zoom_for(4096, 400) == 11);
  CHECK(zoom_for(std::numeric_limits<Index>::max(), 1) == std::numeric_limits<Index>::max());
  for (Index length = 1; length < 200; ++length) {
    for (Index most = 1; most < 50; ++most) {
      const Index zoom = zoom_for(length, most);
      REQUIRE((length + zoom - 1) / zoom <= most);
      REQUIRE((zoom == 1 || (length + zoom - 2) / (zoom - 1) > most));
    }
  }
}

TEST_CASE("heat maps have the levels of their range, and a place for no value") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> values = {0, 1, 0.5, -3, 7, std::nan(""), infinity, -infinity};
  const Grid grid = heat_grid(2, 4, values, 0, 1);
  CHECK(grid.cells == std::vector<std::uint8_t>{0, 127, 64, 0, 127, kNoValue, 127, 0});
  CHECK(grid.heat);
  CHECK(grid.at(1, 0) == 127);
  CHECK(heat_grid(1, 2, std::vector<double>{3, 4}, 3, 3).cells == std::vector<std::uint8_t>{0, 0});
}

TEST_CASE("grids beyond the limit are refused by name of the size") {
  const Figure figure = figure_of(causal(1, kMaxCells + 1));
  CHECK_THROWS_WITH_AS(svg(figure),
                       "the picture has 1 x 4097 cells, expected at most 4096 on each side",
                       UsageError);
  CHECK_NOTHROW(check_figure(figure_of(causal(1, kMaxCells))));
}

TEST_CASE("figures that contradict themselves are bugs of the caller") {
  Figure figure = figure_of(causal(3, 3));
  figure.panels[0].rows.labels = {"one"};
  CHECK_THROWS_AS(check_figure(figure), std::logic_error);
  figure = figure_of(causal(3, 3));
  figure.panels[0].grid.cells[4] = kClasses;
  CHECK_THROWS_AS(check_figure(figure), std::logic_error);
  figure = figure_of(causal(3, 3));
  figure.panels[0].columns.zoom = 0;
  CHECK_THROWS_AS(check_figure(figure), std::logic_error);
  figure = figure_of(causal(3, 3));
  figure.legend = {{kClasses, "none"}};
  CHECK_THROWS_AS(check_figure(figure), std::logic_error);
  figure = figure_of(causal(3, 3));
  figure.panels[0].grid.cells.pop_back();
  CHECK_THROWS_AS(check_figure(figure), std::logic_error);
}

TEST_CASE("a description is made from the sizes if there is none") {
  Figure figure = figure_of(causal(3, 4));
  CHECK(description_of(figure) == "a grid of 3 rows (query) and 4 columns (key).");
  figure.description = "mine";
  CHECK(description_of(figure) == "mine");
  CHECK(description_of(Figure{}) == "An empty picture.");
}

}  // namespace
}  // namespace masque::draw
