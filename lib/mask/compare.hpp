// Where two masks differ.
#pragma once

#include <optional>

#include "mask/mask.hpp"

namespace masque::mask {

struct MaskDifference {
  struct Cell {
    Index query = 0;
    Index key = 0;
  };
  std::uint64_t only_a = 0;  ///< pairs that only a lets through
  std::uint64_t only_b = 0;
  std::uint64_t both = 0;
  std::optional<Cell> first;  ///< the first differing cell, row by row

  bool equal() const { return only_a == 0 && only_b == 0; }
};

/// Compares masks of equal lengths. Cost as visit_tiles of both.
MaskDifference compare_masks(const Mask& a, const Mask& b);

}  // namespace masque::mask
