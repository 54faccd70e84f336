// The characters and colours of cells on a terminal.
#pragma once

#include <string>
#include <string_view>

#include "draw/figure.hpp"
#include "draw/terminal_style.hpp"

namespace masque::draw {

/// How the cells of a grid become characters.
enum class CellForm {
  kHalves,  ///< one column, two rows in a line
  kWide,    ///< two columns
  kNarrow,  ///< one column
};

inline Index columns_of(CellForm form) { return form == CellForm::kWide ? 2 : 1; }
inline Index rows_of(CellForm form) { return form == CellForm::kHalves ? 2 : 1; }

/// A line that knows how many columns it takes, colours or not.
class TerminalLine {
 public:
  static constexpr int kPlain = -1;

  /// Text safe to print, of `columns` columns, in the 256 colours.
  void add(std::string_view text, Index columns, int color = kPlain, int background = kPlain);
  /// The same, measured.
  void add(std::string_view text);
  /// Spaces up to a column.
  void pad(Index column);
  /// Another line after this one.
  void append(const TerminalLine& other);

  Index columns() const { return columns_; }
  /// Without spaces at the end, with a line feed.
  std::string finish() const;

 private:
  void set_colors(int color, int background);

  std::string text_;
  Index columns_ = 0;
  int color_ = kPlain;
  int background_ = kPlain;
};

/// Whether half blocks can tell all cells of the grid apart.
bool has_halves(const Grid& grid, const TerminalStyle& style);

/// The cells of line number `line`.
void add_cells(TerminalLine& out, const Grid& grid, Index line, CellForm form,
               const TerminalStyle& style);

/// A class as the legend shows it.
void add_sample(TerminalLine& out, std::uint8_t cell, const TerminalStyle& style);

/// All levels of heat in a few columns.
void add_ramp(TerminalLine& out, const TerminalStyle& style);

}  // namespace masque::draw
