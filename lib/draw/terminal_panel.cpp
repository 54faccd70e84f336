#include "draw/terminal_panel.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "draw/text.hpp"
#include "draw/ticks.hpp"

namespace masque::draw {

namespace {

constexpr Index kFewLines = 24;       ///< each of which has its number
constexpr Index kNumberDistance = 4;  ///< lines between numbers otherwise
constexpr Index kLeastLabel = 8;      ///< columns that a row's label gets, however narrow the lines
constexpr Index kColumnLabelHeight = 10;

/// One text for each line.
std::vector<std::string> row_labels(const Panel& panel, CellForm form, const TerminalStyle& style) {
  const Axis& axis = panel.rows;
  const Index rows = rows_of(form);
  std::vector<std::string> labels(static_cast<std::size_t>((panel.grid.rows + rows - 1) / rows));
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
    const Index position = (begin + step - 1) / step * step;
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
    const Index position = (begin + step - 1) / step * step;
    if (position >= begin + axis.zoom) continue;
    const std::string number = std::to_string(position);
    const Index at = margin + cell * columns_of(form);
    if (at + static_cast<Index>(number.size()) > style.width) break;
    out.pad(at);
    out.add(number);
  }
  return out;
}

}  // namespace

std::string printable(const std::string& text, const TerminalStyle& style) {
  return style.unicode ? escape(text) : ascii_only(escape(text));
}

std::string shortened(const std::string& text, Index columns, const TerminalStyle& style) {
  return shorten(printable(text, style), static_cast<int>(columns), cut_mark(style));
}

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

}  // namespace masque::draw
