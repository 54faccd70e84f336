#include "draw/terminal.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/escape.hpp"
#include "draw/text.hpp"
#include "draw/ticks.hpp"

namespace masque::draw {

namespace {

// Colours and signs.

/// The terminal's own colour.
constexpr int kPlain = -1;

// Of the 256 colours of xterm: middle ones for classes, an ascending row for heat.
constexpr std::array<int, kClasses> kClassColors = {kPlain, 33, 110, 208, 170, 43, 142, 94};
constexpr std::array kHeatColors = {17, 18, 54, 90, 126, 162, 168, 174, 180, 186, 228, 230};
constexpr std::array kShades = {" ", "░", "▒", "▓", "█"};
constexpr std::string_view kAsciiShades = " .:-=+*#%@";
constexpr std::string_view kAsciiClasses = ".#+ABCDE";

/// Which of `count` equal parts of the levels a level is in.
std::size_t part_of(std::uint8_t level, std::size_t count) { return level * count / kHeatLevels; }

int color_of(const Grid& grid, std::uint8_t cell, const TerminalStyle& style) {
  if (!style.color || (grid.heat && cell == kNoValue)) return kPlain;
  return grid.heat ? kHeatColors[part_of(cell, kHeatColors.size())] : kClassColors[cell];
}

/// One column of a cell; a second column has it again if `is_solid`.
struct Sign {
  std::string_view text;
  bool is_solid = false;
};

Sign sign_of(bool heat, std::uint8_t cell, const TerminalStyle& style) {
  if (heat && cell == kNoValue) return {"?"};
  if (heat) {
    if (!style.unicode) return {kAsciiShades.substr(part_of(cell, kAsciiShades.size()), 1)};
    return {style.color ? "█" : kShades[part_of(cell, kShades.size())], true};
  }
  if (!style.unicode) return {kAsciiClasses.substr(cell, 1)};
  if (cell == kBlocked) return {"·"};
  if (cell == kVisible || style.color) return {"█", true};
  return cell == kPartial ? Sign{"▒", true} : Sign{kAsciiClasses.substr(cell, 1)};
}

/// Two cells above each other, without colour: how much of both is visible.
std::string_view halves(std::uint8_t top, std::uint8_t bottom) {
  if (top == kBlocked && bottom == kBlocked) return "·";
  if (top == kVisible && bottom == kBlocked) return "▀";
  if (top == kBlocked && bottom == kVisible) return "▄";
  const auto quarters = [](std::uint8_t cell) {
    return cell == kVisible ? 2U : cell == kPartial ? 1U : 0U;
  };
  return kShades[quarters(top) + quarters(bottom)];
}

// A line.

/// A line that knows how many columns it takes, colours or not.
class TerminalLine {
 public:
  /// Appends `text`, safe to print and of `columns` columns; `color` and `background` are of the
  /// 256 colours, or kPlain.
  void add(std::string_view text, Index columns, int color = kPlain, int background = kPlain);
  /// Appends `text` without colour; its columns are measured.
  void add(std::string_view text);
  /// Appends spaces up to `column`, from 0; nothing if the line is longer.
  void pad(Index column);
  /// Appends the line `other`.
  void append(const TerminalLine& other);

  /// Columns so far.
  Index columns() const { return columns_; }
  /// The line without spaces at the end, its colours ended, with a line feed.
  std::string finish() const;

 private:
  void set_colors(int color, int background);

  std::string text_;
  Index columns_ = 0;
  int color_ = kPlain;
  int background_ = kPlain;
};

void TerminalLine::set_colors(int color, int background) {
  if (color == color_ && background == background_) return;
  if ((color == kPlain && color_ != kPlain) || (background == kPlain && background_ != kPlain)) {
    text_ += "\x1b[0m";
    color_ = background_ = kPlain;
  }
  if (color != color_) fmt::format_to(std::back_inserter(text_), "\x1b[38;5;{}m", color);
  if (background != background_) {
    fmt::format_to(std::back_inserter(text_), "\x1b[48;5;{}m", background);
  }
  color_ = color;
  background_ = background;
}

void TerminalLine::add(std::string_view text, Index columns, int color, int background) {
  set_colors(color, background);
  text_ += text;
  columns_ += columns;
}

void TerminalLine::add(std::string_view text) { add(text, text_columns(text)); }

void TerminalLine::pad(Index column) {
  if (column <= columns_) return;
  const Index spaces = column - columns_;
  add(std::string(static_cast<std::size_t>(spaces), ' '), spaces);
}

void TerminalLine::append(const TerminalLine& other) {
  set_colors(kPlain, kPlain);
  text_ += other.text_;
  columns_ += other.columns_;
  color_ = other.color_;
  background_ = other.background_;
}

std::string TerminalLine::finish() const {
  if (color_ != kPlain || background_ != kPlain) return text_ + "\x1b[0m\n";
  const std::size_t end = text_.find_last_not_of(' ');
  return text_.substr(0, end == std::string::npos ? 0 : end + 1) + '\n';
}

// Cells.

/// How the cells of a grid become characters.
enum class CellForm {
  kHalves,  ///< one column, two rows in a line
  kWide,    ///< two columns
  kNarrow,  ///< one column
};

/// Columns of a cell of this `form`.
Index columns_of(CellForm form) { return form == CellForm::kWide ? 2 : 1; }
/// Rows of a grid in a line of this `form`.
Index rows_of(CellForm form) { return form == CellForm::kHalves ? 2 : 1; }

void add_sign(TerminalLine& out, Sign sign, CellForm form, int color) {
  out.add(sign.text, 1, color);
  if (form != CellForm::kWide) return;
  if (sign.is_solid) {
    out.add(sign.text, 1, color);
  } else {
    out.add(" ", 1);
  }
}

/// Whether half blocks can tell all cells of `grid` apart in this `style`.
bool has_halves(const Grid& grid, const TerminalStyle& style) {
  if (!style.unicode) return false;
  if (style.color) return true;
  return !grid.heat && std::all_of(grid.cells.begin(), grid.cells.end(),
                                   [](std::uint8_t cell) { return cell <= kPartial; });
}

/// Appends the cells of line number `line` of `grid` (from 0) to `out`, in this `form` and `style`.
void add_cells(TerminalLine& out, const Grid& grid, Index line, CellForm form,
               const TerminalStyle& style) {
  for (Index column = 0; column < grid.columns; ++column) {
    if (form != CellForm::kHalves) {
      const std::uint8_t cell = grid.at(line, column);
      add_sign(out, sign_of(grid.heat, cell, style), form, color_of(grid, cell, style));
      continue;
    }
    const std::uint8_t none = grid.heat ? kNoValue : std::uint8_t{kBlocked};
    const std::uint8_t top = grid.at(2 * line, column);
    const std::uint8_t bottom = 2 * line + 1 < grid.rows ? grid.at(2 * line + 1, column) : none;
    if (!style.color) {
      out.add(halves(top, bottom), 1);
      continue;
    }
    const int above = color_of(grid, top, style);
    const int below = color_of(grid, bottom, style);
    if (above == below) {
      out.add(above != kPlain ? "█" : grid.heat ? " " : "·", 1, above);
    } else if (above == kPlain) {
      out.add("▄", 1, below);
    } else {
      out.add("▀", 1, above, below);
    }
  }
}

/// Appends the class `cell` to `out` as the legend shows it in this `style`.
void add_sample(TerminalLine& out, std::uint8_t cell, const TerminalStyle& style) {
  const Sign sign = sign_of(false, cell, style);
  add_sign(out, sign, sign.is_solid ? CellForm::kWide : CellForm::kNarrow,
           style.color ? kClassColors[cell] : kPlain);
}

/// Appends all levels of heat to `out`, in a few columns: each sign or colour of `style` once.
void add_ramp(TerminalLine& out, const TerminalStyle& style) {
  std::uint8_t last = kNoValue;
  for (std::uint8_t level = 0; level < kHeatLevels; ++level) {
    const std::size_t parts = style.color     ? kHeatColors.size()
                              : style.unicode ? kShades.size()
                                              : kAsciiShades.size();
    if (last != kNoValue && part_of(level, parts) == part_of(last, parts)) continue;
    last = level;
    const int color = style.color ? kHeatColors[part_of(level, kHeatColors.size())] : kPlain;
    add_sign(out, sign_of(true, level, style), CellForm::kNarrow, color);
  }
}

// A panel as lines.

/// The lines of a panel, from top to bottom.
using Block = std::vector<TerminalLine>;

/// The rows' names of a panel without labels take no more: a number of ten digits and a space.
constexpr Index kNumberMargin = 11;

/// `text` of the caller, safe to print in this `style`: escaped, and ASCII if it has no Unicode.
std::string printable(const std::string& text, const TerminalStyle& style) {
  return style.unicode ? escape(text) : ascii_only(escape(text));
}

/// The mark of this `style` after text that is cut.
const char* cut_mark(const TerminalStyle& style) { return style.unicode ? "…" : ".."; }

/// `text` as printable() gives it in this `style`, cut to so many `columns`.
std::string shortened(const std::string& text, Index columns, const TerminalStyle& style) {
  return shorten(printable(text, style), static_cast<int>(columns), cut_mark(style));
}

constexpr Index kFewLines = 24;       ///< each of which has its number
constexpr Index kNumberDistance = 4;  ///< lines between numbers otherwise
constexpr Index kLeastLabel = 8;      ///< columns that a row's label gets, however narrow the lines
constexpr Index kColumnLabelHeight = 10;

/// One text for each line.
std::vector<std::string> row_labels(const Panel& panel, CellForm form, const TerminalStyle& style) {
  const Axis& axis = panel.rows;
  const Index rows = rows_of(form);
  std::vector<std::string> labels(static_cast<std::size_t>(divide_up(panel.grid.rows, rows)));
  if (!axis.labels.empty() && rows == 1) {
    const Index room = std::max<Index>(kLeastLabel, style.width / 4);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      labels[i] = shortened(axis.labels[i], room, style);
    }
    return labels;
  }
  const bool is_few = axis.zoom == 1 && static_cast<Index>(labels.size()) <= kFewLines;
  Index step = rows;
  if (!is_few) {
    step = round_step(static_cast<double>(kNumberDistance * rows * axis.zoom));
    if (rows > 1 && step % 2 != 0) step *= 2;
  }
  for (Index cell = 0; cell < panel.grid.rows; ++cell) {
    const Index begin = axis.first + cell * axis.zoom;
    const Index position = round_up(begin, step);
    if (is_few ? cell % step != 0 : position >= begin + axis.zoom) continue;
    labels[static_cast<std::size_t>(cell / rows)] = std::to_string(is_few ? begin : position);
  }
  return labels;
}

/// The rows' name and the labels of columns, from top to bottom, a cell of two columns for each.
void add_column_labels(Block& block, const Axis& axis, const std::string& row_name, Index margin,
                       const TerminalStyle& style) {
  std::vector<std::vector<std::string>> labels;
  std::size_t height = 0;
  for (const std::string& label : axis.labels) {
    const std::string text = shortened(label, kColumnLabelHeight, style);
    std::vector<std::string>& letters = labels.emplace_back();
    std::string_view rest = text;
    for (Character c; !rest.empty(); rest.remove_prefix(c.bytes.size())) {
      c = first_character(rest);
      if (c.columns > 0 || letters.empty()) letters.emplace_back();
      letters.back() += c.bytes;
    }
    height = std::max(height, letters.size());
  }
  for (std::size_t line = 0; line < height; ++line) {
    TerminalLine& out = block.emplace_back();
    if (line + 1 == height) out.add(row_name);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      out.pad(margin + 2 * static_cast<Index>(i));
      const std::size_t above = height - labels[i].size();
      if (line >= above) out.add(labels[i][line - above]);
    }
  }
}

TerminalLine column_numbers(const Panel& panel, CellForm form, const std::string& row_name,
                            Index margin, const TerminalStyle& style) {
  const Axis& axis = panel.columns;
  const Index cells = panel.grid.columns;
  const auto digits = std::to_string(axis.first + cells * axis.zoom).size();
  const Index step =
      round_step(static_cast<double>(digits + 2) / static_cast<double>(columns_of(form)) *
                 static_cast<double>(axis.zoom));
  TerminalLine out;
  out.add(row_name);
  for (Index cell = 0; cell < cells; ++cell) {
    const Index begin = axis.first + cell * axis.zoom;
    const Index position = round_up(begin, step);
    if (position >= begin + axis.zoom) continue;
    const std::string number = std::to_string(position);
    const Index at = margin + cell * columns_of(form);
    if (at + static_cast<Index>(number.size()) > style.width) break;
    out.pad(at);
    out.add(number);
  }
  return out;
}

/// `panel` with its names and labels, its cells in this `form` and `style`. Takes kNarrow for kWide
/// if the lines are too short for it; throws UsageError if they are even then.
Block panel_block(const Panel& panel, CellForm form, const TerminalStyle& style) {
  const Grid& grid = panel.grid;
  std::vector<std::string> labels;
  if (!grid.cells.empty()) labels = row_labels(panel, form, style);
  const std::string row_name = shortened(panel.rows.name, kNumberMargin - 1, style);
  Index margin = text_columns(row_name);
  for (const std::string& label : labels) {
    margin = std::max<Index>(margin, text_columns(label));
  }
  if (margin > 0) ++margin;
  if (margin + grid.columns * columns_of(form) > style.width) {
    if (form == CellForm::kWide) form = CellForm::kNarrow;
    if (margin + grid.columns > style.width) {
      throw UsageError(fmt::format(
          "a picture of {} columns does not fit into lines of {} characters: write it to a file",
          grid.columns, style.width));
    }
  }

  Block block;
  for (const std::string* name : {&panel.name, &panel.columns.name}) {
    if (name->empty()) continue;
    const std::string text = shortened(*name, style.width, style);
    block.emplace_back().pad(std::min<Index>(margin, style.width - text_columns(text)));
    block.back().add(text);
  }
  if (panel.columns.labels.empty() || form != CellForm::kWide) {
    block.push_back(column_numbers(panel, form, row_name, margin, style));
  } else {
    add_column_labels(block, panel.columns, row_name, margin, style);
  }
  for (std::size_t line = 0; line < labels.size(); ++line) {
    TerminalLine& out = block.emplace_back();
    out.pad(margin - 1 - text_columns(labels[line]));
    out.add(labels[line]);
    out.pad(margin);
    add_cells(out, grid, static_cast<Index>(line), form, style);
  }
  if (grid.cells.empty()) block.emplace_back().add("empty");
  return block;
}

// A figure.

constexpr Index kTextGap = 3;

Index width_of(const Block& block) {
  Index width = 0;
  for (const TerminalLine& line : block) width = std::max(width, line.columns());
  return width;
}

class TerminalWriter {
 public:
  TerminalWriter(const Figure& figure, const TerminalStyle& style)
      : figure_(figure), style_(style) {}

  std::string write();

 private:
  void add_text(const std::string& text);
  void add_legend();
  void add_heat();
  void add_row(const std::vector<Block>& row);
  void end_part() {
    if (!out_.empty()) out_ += '\n';
  }

  const Figure& figure_;
  const TerminalStyle& style_;
  CellForm form_ = CellForm::kHalves;  ///< the same in all panels, unless one is too wide
  std::string out_;
};

void TerminalWriter::add_row(const std::vector<Block>& row) {
  if (row.empty()) return;
  end_part();
  std::size_t height = 0;
  for (const Block& block : row) height = std::max(height, block.size());
  for (std::size_t line = 0; line < height; ++line) {
    TerminalLine out;
    Index left = 0;
    for (const Block& block : row) {
      out.pad(left);
      if (line < block.size()) out.append(block[line]);
      left += width_of(block) + kTextGap;
    }
    out_ += out.finish();
  }
}

void TerminalWriter::add_text(const std::string& text) {
  if (text.empty()) return;
  end_part();
  for (const std::string& line :
       wrap(printable(text, style_), style_.width, 20, cut_mark(style_))) {
    out_ += line + '\n';
  }
}

void TerminalWriter::add_heat() {
  end_part();
  TerminalLine out;
  const std::string name = shortened(figure_.heat.name, style_.width / 2, style_);
  if (!name.empty()) out.add(name + ": ");
  out.add(legend_number(figure_.heat.low) + " [");
  add_ramp(out, style_);
  out.add("] ");
  out.add(legend_number(figure_.heat.high));
  out_ += out.finish();
}

void TerminalWriter::add_legend() {
  end_part();
  TerminalLine out;
  for (const LegendEntry& entry : figure_.legend) {
    TerminalLine one;
    add_sample(one, entry.cell, style_);
    one.add(" ");
    one.add(shortened(entry.name, style_.width - 3, style_));
    if (out.columns() > 0 && out.columns() + kTextGap + one.columns() > style_.width) {
      out_ += std::exchange(out, {}).finish();
    }
    if (out.columns() > 0) out.pad(out.columns() + kTextGap);
    out.append(one);
  }
  out_ += out.finish();
}

std::string TerminalWriter::write() {
  check_figure(figure_);
  for (const Panel& panel : figure_.panels) {
    const bool has_labels = !panel.rows.labels.empty() || !panel.columns.labels.empty();
    const bool is_small = panel.grid.rows > 0 && panel.grid.rows <= style_.single_rows;
    if (has_labels || is_small || !has_halves(panel.grid, style_)) form_ = CellForm::kWide;
  }
  add_text(figure_.title);
  std::vector<Block> row;
  Index left = 0;
  bool has_heat = false;
  for (const Panel& panel : figure_.panels) {
    Block block = panel_block(panel, form_, style_);
    const Index width = width_of(block);
    const bool is_full =
        figure_.panels_per_row > 0 && static_cast<Index>(row.size()) == figure_.panels_per_row;
    if (is_full || left + width > style_.width) {
      add_row(std::exchange(row, {}));
      left = 0;
    }
    left += width + kTextGap;
    row.push_back(std::move(block));
    has_heat = has_heat || panel.grid.heat;
  }
  add_row(row);
  if (has_heat) add_heat();
  if (!figure_.legend.empty()) add_legend();
  add_text(figure_.note);
  return std::move(out_);
}

}  // namespace

std::string terminal(const Figure& figure, const TerminalStyle& style) {
  return TerminalWriter(figure, style).write();
}

Index terminal_cells(const TerminalStyle& style) {
  return std::max<Index>(1, style.width - kNumberMargin);
}

}  // namespace masque::draw
