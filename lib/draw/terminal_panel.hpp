// A panel as lines of a terminal.
#pragma once

#include <string>
#include <vector>

#include "draw/terminal_cells.hpp"

namespace masque::draw {

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

}  // namespace masque::draw
