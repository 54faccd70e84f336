// A picture as simple shapes in pixels: what the layouts make and the writers draw.
#pragma once

#include <string>
#include <vector>

#include "draw/figure.hpp"
#include "draw/palette.hpp"

namespace masque::draw {

struct Box {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  int right() const { return x + width; }
  int bottom() const { return y + height; }
};

struct Fill {
  Box box;
  Ink ink = kInkFrame;
};

/// The cells of a grid that is not empty; each is `width` × `height` pixels.
struct Cells {
  int x = 0;
  int y = 0;
  int width = 1;
  int height = 1;
  const Grid* grid = nullptr;
};

enum class Font : std::uint8_t { kTitle, kText, kLabel };
enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

/// One line of text, safe to print. Upright text is turned to the left: it starts at the bottom.
struct Text {
  std::string text;
  int x = 0;  ///< of the anchor; the middle of the line if upright
  int y = 0;  ///< the middle of the line; of the anchor if upright
  Font font = Font::kText;
  Anchor anchor = Anchor::kStart;
  bool upright = false;
  Ink ink = kInkText;
};

struct Point {
  double x = 0;
  double y = 0;
};

enum class Dash : std::uint8_t { kNone, kDashed, kDotted };

/// A curve of two pixels' thickness.
struct Line {
  std::vector<Point> points;
  Ink ink = kInkCurve;
  Dash dash = Dash::kNone;
};

/// The share of an area's ink in its tint; the rest is the background.
inline constexpr double kTint = 0.2;

/// What a closed line surrounds, as a light tint of its ink, which is a curve's.
struct Area {
  std::vector<Point> points;
  Ink ink = kInkCurve;
};

/// Shapes, drawn in the order of the members. Points into the figure it was made from.
struct Scene {
  int width = 0;
  int height = 0;
  std::string title;
  std::string description;
  std::vector<Cells> cells;
  std::vector<Fill> fills;
  std::vector<Area> areas;
  std::vector<Line> lines;
  std::vector<Text> texts;
};

/// How much room text needs; a writer's fonts must keep within it.
struct Metrics {
  struct Size {
    double column;  ///< width of a column
    int line;       ///< height of a line
  };
  Size sizes[3];  ///< by Font

  int width(const std::string& text, Font font) const;
  int line(Font font) const { return sizes[static_cast<int>(font)].line; }
  /// How many columns fit into so many pixels.
  int columns(int pixels, Font font) const;
};

/// Title, text and numbers of an SVG. The reader's fonts are not known: these are a wide sans-serif
/// of 15 and 12 pixels, and a fixed width of 12.
inline constexpr Metrics kSvgMetrics = {{{9.9, 20}, {7.4, 16}, {7.3, 14}}};

/// Of a PNG: the built-in letters, those of the title a dot thicker.
inline constexpr Metrics kPngMetrics = {{{7, 16}, {6, 14}, {6, 12}}};

/// Where a text stands.
Box box_of(const Text& text, const Metrics& metrics);

void shift(Scene& scene, int x, int y);

/// A frame of one pixel around `box`.
void add_frame(Scene& scene, Box box);

}  // namespace masque::draw
