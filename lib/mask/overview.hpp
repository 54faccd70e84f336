// A zoomed-out mask: how much of each square of cells is visible.
#pragma once

#include <vector>

#include "mask/mask.hpp"

namespace masque::mask {

/// Visible pairs of squares of zoom × zoom cells (smaller at the ends).
class Overview {
 public:
  /// Looks at `mask` in squares of `zoom` × `zoom` cells, from 1. Throws UsageError if there would
  /// be more than kMaxCells squares. Cost as visit_tiles, memory 8 bytes a square.
  Overview(const Mask& mask, Index zoom);

  /// Most squares.
  static constexpr Index kMaxCells = Index{1} << 28;

  /// Squares from top to bottom.
  Index rows() const { return rows_; }
  /// Squares from left to right.
  Index columns() const { return columns_; }
  /// Cells along a side of a square.
  Index zoom() const { return zoom_; }
  /// Number of visible pairs in the square at (`row`, `column`).
  std::uint64_t visible(Index row, Index column) const {
    return visible_[static_cast<std::size_t>(row * columns_ + column)];
  }
  /// What the mask lets through in the square at (`row`, `column`): exact, however small the
  /// visible or hidden part is.
  Cover cover(Index row, Index column) const;

 private:
  Lengths lengths_;
  Index zoom_;
  Index rows_;
  Index columns_;
  std::vector<std::uint64_t> visible_;
};

}  // namespace masque::mask
