// The characters and colours of cells on a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "draw/figure.hpp"

namespace masque::draw {

// What a terminal can show.

/// A terminal as figures are drawn for it.
struct TerminalStyle {
  int width = 80;       ///< columns that a line may have
  bool unicode = true;  ///< else ASCII only
  bool color = false;   ///< ANSI, 256 colours; readable on light and dark
  /// Grids of at most so many rows have a line for each; others may share one.
  int single_rows = 0;
};

/// How the cells of a grid become characters.
enum class CellForm {
  kHalves,  ///< one column, two rows in a line
  kWide,    ///< two columns
  kNarrow,  ///< one column
};

/// Columns of a cell of this `form`.
inline Index columns_of(CellForm form) { return form == CellForm::kWide ? 2 : 1; }
/// Rows of a grid in a line of this `form`.
inline Index rows_of(CellForm form) { return form == CellForm::kHalves ? 2 : 1; }

/// A line that knows how many columns it takes, colours or not.
class TerminalLine {
 public:
  /// The terminal's own colour.
  static constexpr int kPlain = -1;

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

/// Whether half blocks can tell all cells of `grid` apart in this `style`.
bool has_halves(const Grid& grid, const TerminalStyle& style);

/// Appends the cells of line number `line` of `grid` (from 0) to `out`, in this `form` and `style`.
void add_cells(TerminalLine& out, const Grid& grid, Index line, CellForm form,
               const TerminalStyle& style);

/// Appends the class `cell` to `out` as the legend shows it in this `style`.
void add_sample(TerminalLine& out, std::uint8_t cell, const TerminalStyle& style);

/// Appends all levels of heat to `out`, in a few columns: each sign or colour of `style` once.
void add_ramp(TerminalLine& out, const TerminalStyle& style);

// Pictures as lines of characters.

// A panel as lines of a terminal.

/// The lines of a panel, from top to bottom.
using Block = std::vector<TerminalLine>;

/// The rows' names of a panel without labels take no more: a number of ten digits and a space.
inline constexpr Index kNumberMargin = 11;

/// `text` of the caller, safe to print in this `style`: escaped, and ASCII if it has no Unicode.
std::string printable(const std::string& text, const TerminalStyle& style);

/// The mark of this `style` after text that is cut.
inline const char* cut_mark(const TerminalStyle& style) { return style.unicode ? "…" : ".."; }

/// `text` as printable() gives it in this `style`, cut to so many `columns`.
std::string shortened(const std::string& text, Index columns, const TerminalStyle& style);

/// `panel` with its names and labels, its cells in this `form` and `style`. Takes kNarrow for kWide
/// if the lines are too short for it; throws UsageError if they are even then.
Block panel_block(const Panel& panel, CellForm form, const TerminalStyle& style);

/// `figure` as lines for a terminal of this `style`. Grids that blocks of half a character can show
/// have two rows in a line; others (with labels, of heat or differences without colour, in ASCII,
/// of at most style.single_rows rows) a line for each row, cells two columns wide if they fit.
/// Visible is a full block, partly visible shaded, blocked a dot; in ASCII '#', '+' and '.'; 'A'
/// and 'B' where only one side sees. Every line ends with a line feed and has no spaces before it.
/// Throws UsageError if a grid does not fit into the width even so, and as check_figure.
std::string terminal(const Figure& figure, const TerminalStyle& style);

/// How many columns a grid without labels may surely have in this `style`, for `zoom_for`; at least
/// 1.
Index terminal_cells(const TerminalStyle& style);

}  // namespace masque::draw
