// Masks as figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "draw/figure.hpp"
#include "mask/bit_matrix.hpp"
#include "mask/mask.hpp"

namespace masque::draw {

/// How masks are drawn.
struct MaskFigureRequest {
  std::string title;  ///< of the figure; empty: none
  /// Names of the positions, for queries and keys alike; shown if every position has a cell.
  std::vector<std::string> labels = {};
  Index max_cells = 256;                 ///< along a side; longer masks are zoomed out
  std::string row_name = "query";        ///< name of the axis of queries
  std::string column_name = "key";       ///< name of the axis of keys
  std::string visible_name = "visible";  ///< in the legend; of one mask alone
  std::string blocked_name = "blocked";  ///< in the legend; of one mask alone
};

/// `mask` as a figure, as `request` says: what is visible, and from afar what is partly so. Cost as
/// mask::Overview.
Figure mask_figure(const mask::Mask& mask, const MaskFigureRequest& request);

/// The masks `a` and `b` of equal lengths, with the names `name_a` and `name_b`, and their
/// difference, side by side, as `request` says. Cost as four times mask::Overview.
Figure difference_figure(const mask::Mask& a, const mask::Mask& b, const std::string& name_a,
                         const std::string& name_b, const MaskFigureRequest& request);

}  // namespace masque::draw
