#include "draw/bitmap.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::draw {

namespace {

void check_bits(const Grid& grid, const char* form) {
  const auto is_bit = [](std::uint8_t cell) { return cell == kBlocked || cell == kVisible; };
  if (grid.heat || !std::all_of(grid.cells.begin(), grid.cells.end(), is_bit)) {
    throw UsageError(
        fmt::format("{} shows blocked and visible cells only: no zoom, no difference", form));
  }
}

}  // namespace

std::string ascii(const Grid& grid) {
  check_bits(grid, "ascii");
  std::string out;
  for (Index row = 0; row < grid.rows; ++row) {
    for (Index column = 0; column < grid.columns; ++column) {
      out += grid.at(row, column) == kVisible ? '#' : '.';
    }
    out += '\n';
  }
  return out;
}

std::string pbm(const Grid& grid) {
  check_bits(grid, "pbm");
  if (grid.cells.empty()) throw UsageError("pbm has no pictures without cells");
  std::string out = fmt::format("P4\n{} {}\n", grid.columns, grid.rows);
  for (Index row = 0; row < grid.rows; ++row) {
    for (Index first = 0; first < grid.columns; first += 8) {
      unsigned byte = 0;
      for (Index i = 0; i < 8; ++i) {
        const bool is_set = first + i < grid.columns && grid.at(row, first + i) == kVisible;
        byte = byte << 1 | (is_set ? 1U : 0U);
      }
      out += static_cast<char>(byte);
    }
  }
  return out;
}

}  // namespace masque::draw
