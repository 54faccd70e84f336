// A page to look at every head of a model on one text, by mouse and keyboard.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace masque::draw {

/// The weights of one head.
struct HeadWeights {
  /// [queries, keys], row-major: 255 · weight / scale, rounded.
  std::vector<std::uint8_t> weights;
  double scale = 1;  ///< the weight of 255
};

/// The map of `weights` that are at least 0, row by row: scale is 1, or the largest finite weight
/// if that is more. NaN and negative weights count as 0.
HeadWeights quantized(std::span<const double> weights);

/// What the page shows.
struct HeadExplorer {
  std::string title;                 ///< of the page
  Index layers = 0;                  ///< at least 1
  Index heads = 0;                   ///< of a layer, at least 1
  std::vector<std::string> queries;  ///< names of the rows, UTF-8
  std::vector<std::string> keys;     ///< names of the columns
};

/// Writes `page` as one HTML file that needs nothing else, replacing `path` as a whole or not at
/// all. `map` gives each head, layer by layer, with a weight for each query and key, at least one
/// of each; called from this thread. A weight can be read back within scale / 510. Size: the
/// compressed maps, four bytes for three. Throws InputError if the file cannot be written.
void write_head_explorer(const std::string& path, const HeadExplorer& page,
                         const std::function<HeadWeights(Index layer, Index head)>& map);

}  // namespace masque::draw
