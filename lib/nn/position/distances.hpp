// The distances that occur between positions, each once: rows of a table made for one sequence.
#pragma once

#include <algorithm>
#include <vector>

#include "nn/position/offset_bias.hpp"

namespace masque::nn {

/// The distances query − key between positions, each once: all from the least to the largest where
/// positions are dense, else those of the pairs.
class Distances {
 public:
  /// Finds the distances of `positions`. Nothing is borrowed. Memory: O(T + S) where positions are
  /// dense, else T · S numbers, which are sorted.
  explicit Distances(const PositionIds& positions) {
    const OffsetBounds bounds = offset_bounds(positions);
    dense_ = worth_a_table(bounds, positions);
    if (dense_) {
      values_.reserve(static_cast<std::size_t>(bounds.count()));
      for (Index o = bounds.least; o <= bounds.most; ++o) values_.push_back(-o);
      std::reverse(values_.begin(), values_.end());
      return;
    }
    values_.reserve(positions.queries.size() * positions.keys.size());
    for (const Index query : positions.queries) {
      for (const Index key : positions.keys) values_.push_back(query - key);
    }
    std::sort(values_.begin(), values_.end());
    values_.erase(std::unique(values_.begin(), values_.end()), values_.end());
  }

  /// query − key of each row, in ascending order.
  std::span<const Index> values() const { return values_; }
  /// The row of `distance`, which must be one of values().
  Index row(Index distance) const {
    if (dense_) return distance - values_.front();
    return std::lower_bound(values_.begin(), values_.end(), distance) - values_.begin();
  }

 private:
  bool dense_ = false;
  std::vector<Index> values_;
};

}  // namespace masque::nn
