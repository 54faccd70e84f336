// What a terminal can show.
#pragma once

namespace masque::draw {

/// A terminal as figures are drawn for it.
struct TerminalStyle {
  int width = 80;       ///< columns that a line may have
  bool unicode = true;  ///< else ASCII only
  bool color = false;   ///< ANSI, 256 colours; readable on light and dark
  /// Grids of at most so many rows have a line for each; others may share one.
  int single_rows = 0;
};

}  // namespace masque::draw
