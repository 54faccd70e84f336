// Masks as figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "draw/figure.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/mask.hpp"

namespace masque::draw {

struct MaskFigureRequest {
  std::string title;
  /// Names of the positions, for queries and keys alike; shown if every position has a cell.
  std::vector<std::string> labels = {};
  Index max_cells = 256;  ///< along a side; longer masks are zoomed out
  std::string row_name = "query";
  std::string column_name = "key";
  std::string visible_name = "visible";
  std::string blocked_name = "blocked";
};

/// A mask: what is visible, and from afar what is partly so. Cost as Overview.
Figure mask_figure(const mask::Mask& mask, const MaskFigureRequest& request);

/// Two masks of equal lengths and their difference, side by side.
Figure difference_figure(const mask::Mask& a, const mask::Mask& b, const std::string& name_a,
                         const std::string& name_b, const MaskFigureRequest& request);

}  // namespace masque::draw
