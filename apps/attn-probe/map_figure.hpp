// Pictures of attention weights.
#pragma once

#include <string>
#include <vector>

#include "draw/figure.hpp"
#include "tensor/matrix.hpp"

namespace masque::attn_probe {

/// The largest weights of `cells` × `cells` parts of the map (fewer if it has fewer rows): a thin
/// line is not lost.
std::vector<double> pooled(MatrixView<const double> weights, Index zoom);

/// One head, rows are queries, both sides named; cells stand for `zoom` tokens.
draw::Figure head_figure(MatrixView<const double> weights, const std::vector<std::string>& labels,
                         Index zoom);

/// A head of a page of heads.
struct SmallMap {
  Index layer = 0;
  Index head = 0;
  std::vector<double> cells;  ///< (side, side)
};

/// All heads, a row of panels for each layer; `labels` are the tokens, which stand beside cells of
/// one token.
draw::Figure page_figure(const std::vector<SmallMap>& maps, Index side, Index zoom,
                         Index heads_per_row, const std::vector<std::string>& labels);

}  // namespace masque::attn_probe
