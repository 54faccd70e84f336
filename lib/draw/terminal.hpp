// Pictures as lines of characters.
#pragma once

#include <string>
#include <vector>

#include "draw/figure.hpp"
#include "draw/terminal_cells.hpp"

namespace masque::draw {

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
