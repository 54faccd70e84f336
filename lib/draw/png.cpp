#include "draw/png.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <new>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "draw/chart_layout.hpp"
#include "draw/grid_layout.hpp"
#include "draw/scene.hpp"
#include "draw/text.hpp"

namespace masque::draw {

namespace {

// A scene as dots, each an ink or an ink thinned by the background.

/// Curves have soft edges: for each of their inks, this many steps from the background to it.
constexpr int kBlends = 8;

/// Number of different dots: the inks, then kBlends steps of each curve's ink.
constexpr int kRasterColors = kInks + kCurveInks * kBlends;

static_assert(kRasterColors <= 256);

/// A picture of dots.
struct Raster {
  int width = 0;                   ///< dots of a row
  int height = 0;                  ///< number of rows
  std::vector<std::uint8_t> dots;  ///< [height, width], row-major; below kRasterColors
};

constexpr double kRadius = 1;  ///< of a curve's pen
constexpr double kDashOn = 7;
constexpr double kDotOn = 2;
constexpr double kDashOff = 4;

class Canvas {
 public:
  Canvas(const Scene& scene, int scale) : scale_(scale) {
    raster_.width = scene.width * scale;
    raster_.height = scene.height * scale;
    raster_.dots.resize(static_cast<std::size_t>(raster_.width) *
                        static_cast<std::size_t>(raster_.height));
  }

  void fill(Box box, Ink ink);
  void text(const Text& text);
  void area(const Area& area);
  void line(const Line& line);
  Raster take() { return std::move(raster_); }

 private:
  std::uint8_t* row(int y) {
    return raster_.dots.data() +
           static_cast<std::size_t>(y) * static_cast<std::size_t>(raster_.width);
  }
  void stroke(Point a, Point b, Ink ink);

  Raster raster_;
  int scale_;
};

void Canvas::fill(Box box, Ink ink) {
  const int left = std::clamp(box.x * scale_, 0, raster_.width);
  const int right = std::clamp(box.right() * scale_, left, raster_.width);
  const int top = std::clamp(box.y * scale_, 0, raster_.height);
  const int bottom = std::clamp(box.bottom() * scale_, top, raster_.height);
  for (int y = top; y < bottom; ++y) std::fill(row(y) + left, row(y) + right, ink);
}

void Canvas::text(const Text& text) {
  const Box box = box_of(text, kPngMetrics);
  const bool is_bold = text.font == Font::kTitle;
  const auto advance = static_cast<int>(kPngMetrics.sizes[static_cast<int>(text.font)].column);
  // The letters' 10 dots in the middle of the line, which is higher.
  const int top = (kPngMetrics.line(text.font) - kGlyphHeight) / 2;
  int at = 0;
  std::string_view rest = text.text;
  for (Character c; !rest.empty(); rest.remove_prefix(c.bytes.size())) {
    c = first_character(rest);
    const int width = glyph_width(c.code_point);
    for (int y = 0; y < kGlyphHeight; ++y) {
      for (int x = 0; x <= width; ++x) {
        if (!glyph_dot(c.code_point, x, y) && !(is_bold && glyph_dot(c.code_point, x - 1, y))) {
          continue;
        }
        if (text.upright) {
          fill({box.x + top + y, box.bottom() - 1 - at - x, 1, 1}, text.ink);
        } else {
          fill({box.x + at + x, box.y + top + y, 1, 1}, text.ink);
        }
      }
    }
    at += c.columns * advance;
  }
}

/// A piece of a curve in dots: each dot takes the ink as far as the pen covers it.
void Canvas::stroke(Point a, Point b, Ink ink) {
  const double radius = kRadius * scale_;
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  const double length2 = dx * dx + dy * dy;
  const auto low = [&](double u, double v) {
    return std::max(0, static_cast<int>(std::floor(std::min(u, v) - radius - 1)));
  };
  const auto high = [&](double u, double v, int limit) {
    return std::min(limit, static_cast<int>(std::ceil(std::max(u, v) + radius + 1)));
  };
  const int first = kInks + (ink - kInkCurve) * kBlends;
  for (int y = low(a.y, b.y); y < high(a.y, b.y, raster_.height); ++y) {
    for (int x = low(a.x, b.x); x < high(a.x, b.x, raster_.width); ++x) {
      const double px = x + 0.5 - a.x;
      const double py = y + 0.5 - a.y;
      const double along = length2 > 0 ? std::clamp((px * dx + py * dy) / length2, 0.0, 1.0) : 0;
      const double distance = std::hypot(px - along * dx, py - along * dy);
      const double cover = std::clamp(radius + 0.5 - distance, 0.0, 1.0);
      const auto blend = static_cast<int>(std::lround(cover * kBlends));
      if (blend == 0) continue;
      std::uint8_t& dot = row(y)[x];
      const auto thinned = static_cast<std::uint8_t>(first + blend - 1);
      const bool same_curve = dot >= first && dot < first + kBlends;
      if (!same_curve || dot < thinned) dot = thinned;
    }
  }
}

/// Dots whose middles are inside; of areas that overlap the last one shows.
void Canvas::area(const Area& area) {
  const auto blend = std::max(1L, std::lround(kTint * kBlends));
  const auto tint = static_cast<std::uint8_t>(kInks + (area.ink - kInkCurve) * kBlends + blend - 1);
  std::vector<double> crossings;
  for (int y = 0; y < raster_.height; ++y) {
    const double middle = (y + 0.5) / scale_;
    crossings.clear();
    for (std::size_t i = 0; i < area.points.size(); ++i) {
      const Point a = area.points[i];
      const Point b = area.points[(i + 1) % area.points.size()];
      if ((a.y <= middle) == (b.y <= middle)) continue;
      crossings.push_back((a.x + (b.x - a.x) * (middle - a.y) / (b.y - a.y)) * scale_);
    }
    std::ranges::sort(crossings);
    for (std::size_t i = 0; i + 1 < crossings.size(); i += 2) {
      const auto dot = [&](double x) {
        return std::clamp(static_cast<int>(std::lround(x)), 0, raster_.width);
      };
      std::fill(row(y) + dot(crossings[i]), row(y) + dot(crossings[i + 1]), tint);
    }
  }
}

void Canvas::line(const Line& line) {
  const double on = line.dash == Dash::kDotted ? kDotOn : kDashOn;
  double walked = 0;
  const auto scaled = [&](Point p) { return Point{p.x * scale_, p.y * scale_}; };
  if (line.points.size() == 1) stroke(scaled(line.points[0]), scaled(line.points[0]), line.ink);
  for (std::size_t i = 1; i < line.points.size(); ++i) {
    const Point a = line.points[i - 1];
    const Point b = line.points[i];
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    if (line.dash == Dash::kNone) {
      stroke(scaled(a), scaled(b), line.ink);
      continue;
    }
    const auto point = [&](double at) {
      return scaled({a.x + (b.x - a.x) * at / length, a.y + (b.y - a.y) * at / length});
    };
    for (double at = 0; at < length;) {
      const double phase = std::fmod(walked + at, on + kDashOff);
      const double left = phase < on ? on - phase : on + kDashOff - phase;
      const double end = std::min(length, at + std::max(left, 0.01));
      if (phase < on) stroke(point(at), point(end), line.ink);
      at = end;
    }
    walked += length;
  }
}

/// Draws `scene`, which was laid out with kPngMetrics; a pixel of it becomes `scale` × `scale`
/// dots.
Raster rasterize(const Scene& scene, int scale) {
  Canvas canvas(scene, scale);
  for (const Cells& cells : scene.cells) {
    const Grid& grid = *cells.grid;
    for (Index row = 0; row < grid.rows; ++row) {
      for (Index column = 0; column < grid.columns; ++column) {
        canvas.fill({cells.x + static_cast<int>(column) * cells.width,
                     cells.y + static_cast<int>(row) * cells.height, cells.width, cells.height},
                    ink_of(grid.heat, grid.at(row, column)));
      }
    }
  }
  for (const Fill& fill : scene.fills) canvas.fill(fill.box, fill.ink);
  for (const Area& area : scene.areas) canvas.area(area);
  for (const Line& line : scene.lines) canvas.line(line);
  for (const Text& text : scene.texts) canvas.text(text);
  return canvas.take();
}

/// The colour of `dot`, from 0 and below kRasterColors, on a light page.
Color raster_color(int dot) {
  if (dot < kInks) return color_of(static_cast<Ink>(dot), Theme::kLight);
  const int blend = (dot - kInks) % kBlends + 1;
  const Color ink = color_of(static_cast<Ink>(kInkCurve + (dot - kInks) / kBlends), Theme::kLight);
  const Color page = color_of(kInkBackground, Theme::kLight);
  const auto mix = [&](std::uint8_t of_page, std::uint8_t of_ink) {
    return static_cast<std::uint8_t>((of_page * (kBlends - blend) + of_ink * blend) / kBlends);
  };
  return {mix(page.red, ink.red), mix(page.green, ink.green), mix(page.blue, ink.blue)};
}

// PNG.

constexpr int kMaxPixels = 16384;

std::vector<std::byte> encode(Raster raster) {
  // Only the colours that occur: with few of them a dot takes less than a byte.
  std::array<bool, kRasterColors> used{};
  for (const std::uint8_t dot : raster.dots) used[dot] = true;
  std::array<std::uint8_t, kRasterColors> place{};
  std::vector<std::uint8_t> colors;
  for (int dot = 0; dot < kRasterColors; ++dot) {
    if (!used[static_cast<std::size_t>(dot)]) continue;
    place[static_cast<std::size_t>(dot)] = static_cast<std::uint8_t>(colors.size() / 3);
    const Color color = raster_color(dot);
    colors.insert(colors.end(), {color.red, color.green, color.blue});
  }
  for (std::uint8_t& dot : raster.dots) dot = place[dot];

  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(raster.width);
  image.height = static_cast<png_uint_32>(raster.height);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = static_cast<png_uint_32>(colors.size() / 3);
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> out(size);
  const int is_written = png_image_write_to_memory(&image, out.data(), &size, 0, raster.dots.data(),
                                                   raster.width, colors.data());
  // Its sizes and colours are right: what libpng can lack is memory.
  if (is_written == 0) throw std::bad_alloc();
  out.resize(size);
  return out;
}

std::vector<std::byte> draw_scene(const Scene& scene, int scale) {
  MASQUE_CHECK(scale >= 1 && scale <= kMaxPngScale);
  if (std::max(scene.width, scene.height) * scale > kMaxPixels) {
    throw UsageError(fmt::format("the PNG has {} x {} pixels, expected at most {} on each side",
                                 scene.width * scale, scene.height * scale, kMaxPixels));
  }
  return encode(rasterize(scene, scale));
}

}  // namespace

std::vector<std::byte> png(const Figure& figure, int scale) {
  return draw_scene(lay_out(figure, kPngMetrics), scale);
}

std::vector<std::byte> png(const Chart& chart, int scale) {
  return draw_scene(lay_out(chart, kPngMetrics), scale);
}

namespace {

constexpr int kPerBand = 16;
constexpr int kBandColumns = kPerBand * kGlyphAdvance;  // a gap or a line end after each glyph

// Drawn for masque. ASCII from the space on, sixteen in a band; then kOthers.
constexpr std::string_view kArt = R"(
........#....#.#..........#...##.....##.....#......#...#......................................#
........#....#.#...#.#...####.##..#.#..#....#.....#.....#.....#...............................#
........#....#.#...#.#..#.#......#..#..#....#....#.......#..#.#.#...#........................#.
........#.........#####.#.#.....#....##..........#.......#...###....#.......................#..
........#..........#.#...###....#....##.#........#.......#..#.#.#.#####........###..........#..
..................#####...#.#..#....#..#.........#.......#....#.....#......................#...
........#..........#.#....#.#.#..##.#..#..........#.....#...........#.....##.........##...#....
........#..........#.#..####.....##..##.#..........#...#..................##.........##...#....
..........................#..............................................##....................
...............................................................................................

.###....#....###...###.....#..#####...##..#####..###...###.................................###.
#...#..##...#...#.#...#...##..#......#........#.#...#.#...#................#.........#....#...#
#..##.#.#.......#.....#..#.#..#.....#.........#.#...#.#...#..##.....##....#...........#.......#
#.#.#...#.......#...##..#..#..####..####.....#...###..#...#..##.....##...#....#####....#.....#.
#.#.#...#......#......#.#..#......#.#...#....#..#...#..####.............#...............#...#..
##..#...#.....#.......#.#####.....#.#...#...#...#...#.....#..............#....#####....#....#..
#...#...#....#....#...#....#..#...#.#...#...#...#...#....#...##.....##....#...........#........
.###..#####.#####..###.....#...###...###....#....###...##....##.....##.....#.........#......#..
...................................................................##..........................
...............................................................................................

.###....#...####...###..###...#####.#####..###..#...#..###....###.#...#.#.....#...#.#...#..###.
#...#..#.#..#...#.#...#.#..#..#.....#.....#...#.#...#...#......#..#..#..#.....##.##.##..#.#...#
#.###.#...#.#...#.#.....#...#.#.....#.....#.....#...#...#......#..#.#...#.....#.#.#.##..#.#...#
#.#.#.#...#.####..#.....#...#.####..####..#.....#####...#......#..##....#.....#.#.#.#.#.#.#...#
#.#.#.#####.#...#.#.....#...#.#.....#.....#.###.#...#...#......#..##....#.....#...#.#.#.#.#...#
#.###.#...#.#...#.#.....#...#.#.....#.....#...#.#...#...#......#..#.#...#.....#...#.#..##.#...#
#.....#...#.#...#.#...#.#..#..#.....#.....#...#.#...#...#...#..#..#..#..#.....#...#.#..##.#...#
.###..#...#.####...###..###...#####.#......###..#...#..###...##...#...#.#####.#...#.#...#..###.
...............................................................................................
...............................................................................................

####...###..####...###..#####.#...#.#...#.#...#.#...#.#...#.#####..###..#......###....#........
#...#.#...#.#...#.#...#...#...#...#.#...#.#...#.#...#.#...#.....#..#....#........#...#.#.......
#...#.#...#.#...#.#.......#...#...#.#...#.#...#..#.#...#.#.....#...#.....#.......#..#...#......
#...#.#...#.#...#..##.....#...#...#.#...#.#...#...#....#.#....#....#......#......#.............
####..#...#.####.....#....#...#...#..#.#..#.#.#...#.....#.....#....#......#......#.............
#.....#.#.#.#.#.......#...#...#...#..#.#..#.#.#..#.#....#....#.....#.......#.....#.............
#.....#..#..#..#..#...#...#...#...#..#.#..#.#.#.#...#...#...#......#........#....#.............
#......##.#.#...#..###....#....###....#....#.#..#...#...#...#####..###......#..###.............
..........................................................................................#####
...............................................................................................

.#..........#...............#.........##........#.......#......#..#......##....................
..#.........#...............#........#..........#.................#.......#....................
.......###..#.##...###...##.#..###..####...##.#.#.##...##.....##..#..#....#...##.#..#.##...###.
..........#.##..#.#...#.#..##.#...#..#....#..##.##..#...#......#..#.#.....#...#.#.#.##..#.#...#
.......####.#...#.#.....#...#.#####..#....#...#.#...#...#......#..##......#...#.#.#.#...#.#...#
......#...#.#...#.#.....#...#.#......#....#...#.#...#...#......#..#.#.....#...#.#.#.#...#.#...#
......#...#.##..#.#...#.#..##.#...#..#....#..##.#...#...#......#..#..#....#...#.#.#.#...#.#...#
.......####.#.##...###...##.#..###...#.....##.#.#...#..###.....#..#...#..###..#.#.#.#...#..###.
..............................................#.............#..#...............................
...........................................###...............##................................

.........................#...........................................#....#....#..........#####
.........................#..........................................#.....#.....#.........#...#
#.##...##.#.#.##...####.####..#...#.#...#.#...#.#...#.#...#.#####...#.....#.....#.........#...#
##..#.#..##.##..#.#......#....#...#.#...#.#...#..#.#..#...#....#...#......#......#...##.#.#...#
#...#.#...#.#......###...#....#...#.#...#.#.#.#...#...#...#...#.....#.....#.....#...#..#..#...#
#...#.#...#.#.........#..#....#...#..#.#..#.#.#...#...#...#..#......#.....#.....#.........#...#
##..#.#..##.#.........#..#..#.#..##..#.#..#.#.#..#.#..#..##.#.......#.....#.....#.........#...#
#.##...##.#.#.....####....##...##.#...#....#.#..#...#..##.#.#####....#....#....#..........#####
#.........#...............................................#...............#....................
#.........#............................................###................#....................

...................................................#...#...........##.................#.....#..
..................................................#.....#.....#...#..#.........................
............#...#.....................#.....#....#.......#....#...#..#...............###...###.
........#....#.#.......................#...#......#.....#...#####..##...............#.....#...#
........#.....#...#####..####.#####.#####.#####....#...#......#.....................#.....#....
.............#.#.......................#...#..................#.....................#..##.#....
#.#.#.......#...#.....................#.....#....###...###....................#...#.#...#.#...#
#.#.#.......................................................#####.......#####.#...#..###...###.
........................................................................#####.#####............
...............................................................................................
)";

// The box that stands for others has no entry.
constexpr char32_t kOthers[] = {0x2026, 0x00B7, 0x00D7, 0x2212, 0x2013, 0x2014, 0x2192, 0x2190,
                                0x2264, 0x2265, 0x00B1, 0x00B0, 0x2581, 0x2423, 0x0120, 0x010A};
constexpr int kBox = 95;

int glyph_of(char32_t c) {
  if (c >= 0x20 && c < 0x7F) return static_cast<int>(c) - 0x20;
  const char32_t* const other = std::find(std::begin(kOthers), std::end(kOthers), c);
  if (other == std::end(kOthers)) return kBox;
  return kBox + 1 + static_cast<int>(other - std::begin(kOthers));
}

}  // namespace

int glyph_width(char32_t c) {
  const int columns = glyph_of(c) == kBox ? columns_of(c) : 1;
  return columns == 0 ? 0 : columns * kGlyphAdvance - (kGlyphAdvance - kGlyphWidth);
}

bool glyph_dot(char32_t c, int x, int y) {
  if (x < 0 || y < 0 || x >= glyph_width(c) || y >= kGlyphHeight) return false;
  const int glyph = glyph_of(c);
  if (glyph == kBox && x > 0) x = x + 1 == glyph_width(c) ? kGlyphWidth - 1 : 1;
  // A line end at the start, and an empty line between the bands.
  const int band = 1 + glyph / kPerBand * (kGlyphHeight * kBandColumns + 1);
  const int at = band + y * kBandColumns + glyph % kPerBand * kGlyphAdvance + x;
  return kArt[static_cast<std::size_t>(at)] == '#';
}

}  // namespace masque::draw
