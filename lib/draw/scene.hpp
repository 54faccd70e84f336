// A picture as simple shapes in pixels: what the layouts make and the writers draw.
#pragma once

#include <string>
#include <vector>

#include "draw/figure.hpp"
#include "draw/palette.hpp"

namespace masque::draw {

/// A rectangle in pixels; y grows downwards.
struct Box {
  int x = 0;       ///< left side
  int y = 0;       ///< upper side
  int width = 0;   ///< in pixels
  int height = 0;  ///< in pixels
  /// The first column of pixels to the right of it.
  int right() const { return x + width; }
  /// The first row of pixels below it.
  int bottom() const { return y + height; }
};

/// A rectangle filled with an ink.
struct Fill {
  Box box;              ///< its place
  Ink ink = kInkFrame;  ///< its colour
};

/// The cells of a grid that is not empty; each is `width` × `height` pixels.
struct Cells {
  int x = 0;                   ///< left side of the grid, in pixels
  int y = 0;                   ///< upper side of the grid, in pixels
  int width = 1;               ///< of a cell, in pixels
  int height = 1;              ///< of a cell, in pixels
  const Grid* grid = nullptr;  ///< must outlive the scene
};

/// The fonts of a picture: the title; names and notes; numbers and labels, of a fixed width.
enum class Font : std::uint8_t { kTitle, kText, kLabel };
/// Which part of a text stands at its place.
enum class Anchor : std::uint8_t { kStart, kMiddle, kEnd };

/// One line of text, safe to print. Upright text is turned to the left: it starts at the bottom.
struct Text {
  std::string text;                ///< UTF-8
  int x = 0;                       ///< of the anchor; the middle of the line if upright
  int y = 0;                       ///< the middle of the line; of the anchor if upright
  Font font = Font::kText;         ///< with its size
  Anchor anchor = Anchor::kStart;  ///< which part is at the place
  bool upright = false;            ///< turned to the left
  Ink ink = kInkText;              ///< its colour
};

/// A point in pixels.
struct Point {
  double x = 0;  ///< to the right
  double y = 0;  ///< downwards
};

/// How a curve is interrupted.
enum class Dash : std::uint8_t { kNone, kDashed, kDotted };

/// A curve of two pixels' thickness.
struct Line {
  std::vector<Point> points;  ///< joined in order; one point alone is a dot
  Ink ink = kInkCurve;        ///< of a curve
  Dash dash = Dash::kNone;    ///< its interruptions
};

/// The share of an area's ink in its tint; the rest is the background.
inline constexpr double kTint = 0.2;

/// What a closed line surrounds, as a light tint of its ink, which is a curve's.
struct Area {
  std::vector<Point> points;  ///< joined in order, the last one to the first
  Ink ink = kInkCurve;        ///< of a curve
};

/// Shapes, drawn in the order of the members. Points into the figure it was made from, which must
/// outlive it.
struct Scene {
  int width = 0;             ///< in pixels
  int height = 0;            ///< in pixels
  std::string title;         ///< for readers that show it elsewhere; safe to print
  std::string description;   ///< for those who cannot see it; safe to print
  std::vector<Cells> cells;  ///< grids
  std::vector<Fill> fills;   ///< frames, marks and boxes
  std::vector<Area> areas;   ///< bands of curves
  std::vector<Line> lines;   ///< curves
  std::vector<Text> texts;   ///< all texts
};

/// How much room text needs; a writer's fonts must keep within it.
struct Metrics {
  /// The size of a font, in pixels.
  struct Size {
    double column;  ///< width of a column
    int line;       ///< height of a line
  };
  Size sizes[3];  ///< by Font

  /// Pixels that `text` takes in a line of this `font`, rounded up.
  int width(const std::string& text, Font font) const;
  /// Height of a line of this `font`, in pixels.
  int line(Font font) const { return sizes[static_cast<int>(font)].line; }
  /// How many columns of this `font` fit into so many `pixels`; at least 1.
  int columns(int pixels, Font font) const;
};

/// Title, text and numbers of an SVG. The reader's fonts are not known: these are a wide sans-serif
/// of 15 and 12 pixels, and a fixed width of 12.
inline constexpr Metrics kSvgMetrics = {{{9.9, 20}, {7.4, 16}, {7.3, 14}}};

/// Of a PNG: the built-in letters, those of the title a dot thicker.
inline constexpr Metrics kPngMetrics = {{{7, 16}, {6, 14}, {6, 12}}};

/// Where `text` stands, with the sizes of `metrics`.
Box box_of(const Text& text, const Metrics& metrics);

/// Moves everything in `scene` by (`x`, `y`) pixels; its size stays.
void shift(Scene& scene, int x, int y);

/// Adds a frame of one pixel around `box` to `scene`.
void add_frame(Scene& scene, Box box);

}  // namespace masque::draw
