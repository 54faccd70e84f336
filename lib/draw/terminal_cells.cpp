#include "draw/terminal_cells.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "draw/text.hpp"

namespace masque::draw {

namespace {

constexpr int kPlain = TerminalLine::kPlain;

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

void add_sign(TerminalLine& out, Sign sign, CellForm form, int color) {
  out.add(sign.text, 1, color);
  if (form != CellForm::kWide) return;
  if (sign.is_solid) {
    out.add(sign.text, 1, color);
  } else {
    out.add(" ", 1);
  }
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

}  // namespace

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

bool has_halves(const Grid& grid, const TerminalStyle& style) {
  if (!style.unicode) return false;
  if (style.color) return true;
  return !grid.heat && std::all_of(grid.cells.begin(), grid.cells.end(),
                                   [](std::uint8_t cell) { return cell <= kPartial; });
}

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

void add_sample(TerminalLine& out, std::uint8_t cell, const TerminalStyle& style) {
  const Sign sign = sign_of(false, cell, style);
  add_sign(out, sign, sign.is_solid ? CellForm::kWide : CellForm::kNarrow,
           style.color ? kClassColors[cell] : kPlain);
}

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

}  // namespace masque::draw
