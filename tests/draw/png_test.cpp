// PNG, read back with libpng: the right colour in the middle of every cell, at every scale.
#include "draw/png.hpp"

#include <png.h>

#include <stdexcept>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "draw/chart_layout.hpp"
#include "draw/charts.hpp"
#include "draw/figures.hpp"
#include "draw/grid_layout.hpp"
#include "draw/lightness.hpp"

namespace masque::draw {
namespace {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
  Color at(int x, int y) const {
    const std::uint8_t* pixel = &pixels[3 * static_cast<std::size_t>(y * width + x)];
    return {pixel[0], pixel[1], pixel[2]};
  }
};

Image decode(const std::vector<std::byte>& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0);
  CHECK((image.format & PNG_FORMAT_FLAG_COLORMAP) != 0);
  image.format = PNG_FORMAT_RGB;
  Image out{static_cast<int>(image.width), static_cast<int>(image.height), {}};
  out.pixels.resize(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, out.pixels.data(), 0, nullptr) != 0);
  return out;
}

TEST_CASE("the middle of every cell has the colour of its class or level") {
  for (const Figure& figure : {figure_of(causal(1, 1)), labelled(16, 16), difference(24),
                               heat(6, 40), figure_of(causal(300, 400)), labelled(12, 900)}) {
    CAPTURE(description_of(figure));
    const Scene scene = lay_out(figure, kPngMetrics);
    for (const int scale : {1, 3}) {
      const Image image = decode(png(figure, scale));
      REQUIRE(image.width == scene.width * scale);
      REQUIRE(image.height == scene.height * scale);
      REQUIRE(scene.cells.size() == figure.panels.size());
      for (const Cells& cells : scene.cells) {
        const Grid& grid = *cells.grid;
        for (Index row = 0; row < grid.rows; ++row) {
          for (Index column = 0; column < grid.columns; ++column) {
            const int x = cells.x + static_cast<int>(column) * cells.width + cells.width / 2;
            const int y = cells.y + static_cast<int>(row) * cells.height + cells.height / 2;
            const Color expected = color_of(ink_of(grid.heat, grid.at(row, column)), Theme::kLight);
            REQUIRE(image.at(x * scale + scale / 2, y * scale + scale / 2) == expected);
          }
        }
      }
    }
  }
}

TEST_CASE("text is drawn dot by dot, upright text turned to the left") {
  Figure figure = figure_of(causal(2, 2));
  figure.panels[0].rows.labels = {"T", "x"};
  figure.panels[0].columns.labels = {"TTTTTTTT", "x"};
  const Scene scene = lay_out(figure, kPngMetrics);
  const Image image = decode(png(figure));
  const Color ink = color_of(kInkText, Theme::kLight);
  const Color page = color_of(kInkBackground, Theme::kLight);
  int found = 0;
  for (const Text& text : scene.texts) {
    const Box box = box_of(text, kPngMetrics);
    if (text.text == "T") {
      ++found;
      for (int x = 0; x < 5; ++x) CHECK(image.at(box.x + x, box.y + 1) == ink);
      for (int y = 2; y < 9; ++y) {
        for (int x = 0; x < 5; ++x) {
          CHECK(image.at(box.x + x, box.y + y) == (x == 2 ? ink : page));
        }
      }
    }
    if (text.text == "TTTTTTTT") {
      ++found;
      CHECK(text.upright);
      for (int y = 0; y < 5; ++y) CHECK(image.at(box.x + 1, box.bottom() - 1 - y) == ink);
      CHECK(image.at(box.x + 1, box.bottom() - 6) == page);  // the gap between letters
      CHECK(image.at(box.x + 8, box.bottom() - 3) == ink);
    }
  }
  CHECK(found == 2);
}

TEST_CASE("a curve is drawn where its points are") {
  const Chart chart{.curves = {{"c", {0, 1}, {0, 1}}}};
  const Scene scene = lay_out(chart, kPngMetrics);
  const Image image = decode(png(chart));
  const Point a = scene.lines[0].points[0];
  const Point b = scene.lines[0].points[1];
  for (int i = 0; i <= 10; ++i) {
    const auto x = static_cast<int>(a.x + (b.x - a.x) * i / 10);
    const auto y = static_cast<int>(a.y + (b.y - a.y) * i / 10);
    CHECK(lightness(image.at(x, y)) < 75);
  }
  for (const Chart& each : many_charts()) CHECK(decode(png(each)).width > 500);
}

TEST_CASE("every figure becomes a PNG, the same each time") {
  for (const Figure& figure : many_figures()) {
    const std::vector<std::byte> file = png(figure);
    CHECK(decode(file).width >= 300);
    CHECK(png(figure) == file);
  }
  CHECK(png(figure_of(causal(1000, 1000))).size() < 20'000);
}

TEST_CASE("pictures that would be too large are refused") {
  CHECK_THROWS_AS(png(figure_of(causal(4000, 4000)), 8), UsageError);
  CHECK_THROWS_AS(png(figure_of(causal(1, 1)), 0), std::logic_error);
  CHECK_THROWS_AS(png(figure_of(causal(1, 1)), kMaxPngScale + 1), std::logic_error);
}

}  // namespace
}  // namespace masque::draw
