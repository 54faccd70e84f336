#include "draw/svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/file/file.hpp"
#include "draw/chart_layout.hpp"
#include "draw/grid_layout.hpp"
#include "draw/text.hpp"

namespace masque::draw {

namespace {

/// Text inside an element or a quoted attribute.
std::string xml(std::string_view text) {
  std::string out;
  for (Character c; !text.empty(); text.remove_prefix(c.bytes.size())) {
    c = first_character(text);
    switch (c.code_point) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case 0xFFFD:
      case 0xFFFE:
      case 0xFFFF: out += "\xEF\xBF\xBD"; break;  // XML has no place for the last two
      default: out += c.bytes;
    }
  }
  return out;
}

std::string coordinate(double value) {
  return fmt::format("{}", std::round(value * 10) / 10 + 0.0);
}

class SvgWriter {
 public:
  explicit SvgWriter(const Scene& scene) : scene_(scene) {}

  std::string write();

 private:
  template <typename... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(body_), format, std::forward<Values>(values)...);
  }
  /// The class of an ink, which thereby gets a rule.
  std::string ink(Ink ink) {
    used_[ink] = true;
    return fmt::format("i{}", ink);
  }
  void add_cells(const Cells& cells);
  void add_fills();
  void add_area(const Area& area);
  void add_line(const Line& line);
  void add_points(const std::vector<Point>& points);
  void add_text(const Text& text);
  std::string style(const std::string& id) const;

  const Scene& scene_;
  std::string body_;
  std::array<bool, kInks> used_{}, tinted_{};  ///< of areas
};

/// One path for each ink, in units of cells. Runs of a row grow downwards while they stay the same.
void SvgWriter::add_cells(const Cells& cells) {
  const Grid& grid = *cells.grid;
  struct Run {
    Index begin;
    Index end;
    Index top;
    std::uint8_t cell;
  };
  std::array<std::string, 256> paths;
  const auto close = [&](const Run& run, Index bottom) {
    const Index width = run.end - run.begin;
    fmt::format_to(std::back_inserter(paths[run.cell]), "M{} {}h{}v{}h-{}z", run.begin, run.top,
                   width, bottom - run.top, width);
  };
  std::vector<Run> open;
  std::vector<Run> next;
  for (Index row = 0; row < grid.rows; ++row) {
    next.clear();
    for (Index begin = 0, end = 0; begin < grid.columns; begin = end) {
      const std::uint8_t cell = grid.at(row, begin);
      for (end = begin + 1; end < grid.columns && grid.at(row, end) == cell;) ++end;
      next.push_back({begin, end, row, cell});
    }
    std::size_t i = 0;
    for (Run& run : next) {
      for (; i < open.size() && open[i].begin < run.begin; ++i) close(open[i], row);
      if (i == open.size() || open[i].begin != run.begin) continue;
      if (open[i].end == run.end && open[i].cell == run.cell) {
        run.top = open[i].top;
      } else {
        close(open[i], row);
      }
      ++i;
    }
    for (; i < open.size(); ++i) close(open[i], row);
    std::swap(open, next);
  }
  for (const Run& run : open) close(run, grid.rows);

  add("<g transform=\"translate({} {}) scale({} {})\">\n", cells.x, cells.y, cells.width,
      cells.height);
  for (std::size_t cell = 0; cell < paths.size(); ++cell) {
    if (paths[cell].empty()) continue;
    const Ink of_cell = ink_of(grid.heat, static_cast<std::uint8_t>(cell));
    if (of_cell == kInkBackground) continue;
    add("<path class=\"{}\" d=\"{}\"/>\n", ink(of_cell), paths[cell]);
  }
  add("</g>\n");
}

void SvgWriter::add_fills() {
  const std::vector<Fill>& fills = scene_.fills;
  for (std::size_t begin = 0, end = 0; begin < fills.size(); begin = end) {
    add("<path class=\"{}\" d=\"", ink(fills[begin].ink));
    for (end = begin; end < fills.size() && fills[end].ink == fills[begin].ink; ++end) {
      const Box& box = fills[end].box;
      add("M{} {}h{}v{}h-{}z", box.x, box.y, box.width, box.height, box.width);
    }
    add("\"/>\n");
  }
}

void SvgWriter::add_points(const std::vector<Point>& points) {
  char command = 'M';
  for (const Point& point : points) {
    add("{}{} {}", command, coordinate(point.x), coordinate(point.y));
    command = 'L';
  }
}

void SvgWriter::add_area(const Area& area) {
  tinted_[area.ink] = true;
  add("<path class=\"a{}\" d=\"", area.ink);
  add_points(area.points);
  add("z\"/>\n");
}

void SvgWriter::add_line(const Line& line) {
  add("<path class=\"l {}\"", ink(line.ink));
  if (line.dash == Dash::kDashed) add(" stroke-dasharray=\"7 4\"");
  if (line.dash == Dash::kDotted) add(" stroke-dasharray=\"2 4\"");
  add(" d=\"");
  add_points(line.points);
  add("{}\"/>\n", line.points.size() == 1 ? "h0" : "");
}

void SvgWriter::add_text(const Text& text) {
  if (text.text.empty()) return;
  constexpr std::array kFonts = {"t", "p", "m"};
  constexpr std::array kAnchors = {"", " c", " e"};
  const auto font = static_cast<std::size_t>(text.font);
  const int down = text.font == Font::kTitle ? 5 : 4;  // from the middle to the line of letters
  add("<text class=\"{}{} {}\"", kFonts[font], kAnchors[static_cast<std::size_t>(text.anchor)],
      ink(text.ink));
  if (text.upright) {
    add(" transform=\"translate({} {})rotate(-90)\"", text.x + down, text.y);
  } else {
    add(" x=\"{}\" y=\"{}\"", text.x, text.y + down);
  }
  add(">{}</text>\n", xml(text.text));
}

std::string SvgWriter::style(const std::string& id) const {
  std::string out = fmt::format(
      "#{0} text{{font:12px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,"
      "sans-serif}}\n"
      "#{0} .t{{font-size:15px;font-weight:600}}\n"
      "#{0} .m{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\","
      "monospace}}\n"
      "#{0} .c{{text-anchor:middle}}\n#{0} .e{{text-anchor:end}}\n"
      "#{0} .l{{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}}\n",
      id);
  const auto rules = [&](Theme theme) {
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const Color color = color_of(static_cast<Ink>(i), theme);
      if (tinted_[i]) {
        fmt::format_to(std::back_inserter(out),
                       "#{} .a{}{{fill:#{:02x}{:02x}{:02x};fill-opacity:{}}}\n", id, i, color.red,
                       color.green, color.blue, kTint);
      }
      if (!used_[i]) continue;
      const bool is_curve = i >= kInkCurve && i < kInkHeat;
      fmt::format_to(std::back_inserter(out), "#{} .i{}{{{}:#{:02x}{:02x}{:02x}}}\n", id, i,
                     is_curve ? "stroke" : "fill", color.red, color.green, color.blue);
    }
  };
  rules(Theme::kLight);
  out += "@media screen and (prefers-color-scheme:dark){\n";
  rules(Theme::kDark);
  out += "}\n";
  return out;
}

std::string SvgWriter::write() {
  add("<path class=\"{}\" d=\"M0 0h{}v{}h-{}z\"/>\n", ink(kInkBackground), scene_.width,
      scene_.height, scene_.width);
  add("<g shape-rendering=\"crispEdges\">\n");
  for (const Cells& cells : scene_.cells) add_cells(cells);
  add_fills();
  add("</g>\n");
  for (const Area& area : scene_.areas) add_area(area);
  for (const Line& line : scene_.lines) add_line(line);
  for (const Text& text : scene_.texts) add_text(text);

  const std::string id = fmt::format("m{:.8}", xxh3_of(as_bytes(body_)));
  const std::string& title = scene_.title.empty() ? scene_.description : scene_.title;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"{0}\" width=\"{1}\" height=\"{2}\" "
      "viewBox=\"0 0 {1} {2}\" role=\"img\" aria-labelledby=\"{0}t {0}d\" "
      "xml:space=\"preserve\">\n"
      "<title id=\"{0}t\">{3}</title>\n<desc id=\"{0}d\">{4}</desc>\n<style>\n{5}</style>\n{6}"
      "</svg>\n",
      id, scene_.width, scene_.height, xml(title), xml(scene_.description), style(id), body_);
}

}  // namespace

std::string svg(const Figure& figure) { return SvgWriter(lay_out(figure, kSvgMetrics)).write(); }

std::string svg(const Chart& chart) { return SvgWriter(lay_out(chart, kSvgMetrics)).write(); }

}  // namespace masque::draw
