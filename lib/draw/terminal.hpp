// Pictures as lines of characters for a terminal.
#pragma once

#include <string>

#include "draw/figure.hpp"

namespace masque::draw {

/// A terminal as figures are drawn for it.
struct TerminalStyle {
  int width = 80;       ///< columns that a line may have
  bool unicode = true;  ///< else ASCII only
  bool color = false;   ///< ANSI, 256 colours; readable on light and dark
  /// Grids of at most so many rows have a line for each; others may share one.
  int single_rows = 0;
};

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
