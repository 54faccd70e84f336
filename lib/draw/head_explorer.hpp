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
  std::vector<std::uint8_t>
      weights;       ///< (queries, keys), row by row: 255 · weight / scale, rounded
  double scale = 1;  ///< the weight of 255
};

/// The map of weights that are at least 0: scale is 1, or the largest weight if that is more.
/// NaN and negative weights count as 0.
HeadWeights quantized(std::span<const double> weights);

/// What the page shows.
struct HeadExplorer {
  std::string title;
  Index layers = 0;
  Index heads = 0;
  std::vector<std::string> queries;  ///< names of the rows, UTF-8
  std::vector<std::string> keys;     ///< names of the columns
};

/// Writes one HTML file that needs nothing else, replacing `path` as a whole or not at all. `map`
/// gives each head, layer by layer; called from this thread. A weight can be read back within
/// scale / 510. Size: the compressed maps, four bytes for three. Throws InputError if the file
/// cannot be written.
void write_head_explorer(const std::string& path, const HeadExplorer& page,
                         const std::function<HeadWeights(Index layer, Index head)>& map);

}  // namespace masque::draw
