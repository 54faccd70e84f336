#include "draw/terminal.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "draw/terminal_panel.hpp"
#include "draw/text.hpp"
#include "draw/ticks.hpp"

namespace masque::draw {

namespace {

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
