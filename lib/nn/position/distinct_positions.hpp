// The different positions of queries and keys.
#pragma once

#include <algorithm>
#include <vector>

#include "nn/position/position.hpp"

namespace masque::nn {

/// The different values of `positions`, of queries and keys together, ascending, each once.
inline std::vector<Index> distinct_positions(const PositionIds& positions) {
  std::vector<Index> all(positions.queries.begin(), positions.queries.end());
  all.insert(all.end(), positions.keys.begin(), positions.keys.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace masque::nn
