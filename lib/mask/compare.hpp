// Where two masks differ.
#pragma once

#include <optional>

#include "mask/mask.hpp"

namespace masque::mask {

/// What two masks a and b have in common.
struct MaskDifference {
  /// A pair of positions.
  struct Cell {
    Index query = 0;  ///< its row
    Index key = 0;    ///< its column
  };
  std::uint64_t only_a = 0;   ///< pairs that only a lets through
  std::uint64_t only_b = 0;   ///< pairs that only b lets through
  std::uint64_t both = 0;     ///< pairs that both let through
  std::optional<Cell> first;  ///< the first differing cell, row by row

  /// Whether the masks are the same.
  bool equal() const { return only_a == 0 && only_b == 0; }
};

/// Compares the masks `a` and `b` of equal lengths. Cost as visit_tiles of both.
MaskDifference compare_masks(const Mask& a, const Mask& b);

}  // namespace masque::mask
