// The characters and colours of cells on a terminal.
#pragma once

#include <string>
#include <string_view>

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

}  // namespace masque::draw
