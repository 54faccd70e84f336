// A zoomed-out mask: how much of each square of cells is visible.
#pragma once

#include <vector>

#include "mask/mask.hpp"

namespace masque::mask {

/// Visible pairs of squares of zoom × zoom cells (smaller at the ends).
class Overview {
 public:
  /// Throws UsageError if there would be more than kMaxCells squares. Cost as visit_tiles.
  Overview(const Mask& mask, Index zoom);

  static constexpr Index kMaxCells = Index{1} << 28;

  Index rows() const { return rows_; }
  Index columns() const { return columns_; }
  Index zoom() const { return zoom_; }
  std::uint64_t visible(Index row, Index column) const {
    return visible_[static_cast<std::size_t>(row * columns_ + column)];
  }
  /// Exact, however small the visible or hidden part is.
  Cover cover(Index row, Index column) const;

 private:
  Lengths lengths_;
  Index zoom_;
  Index rows_;
  Index columns_;
  std::vector<std::uint64_t> visible_;
};

}  // namespace masque::mask
