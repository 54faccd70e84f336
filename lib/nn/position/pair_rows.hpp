// Which row of a table a pair of query and key reads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "nn/position.hpp"

namespace masque::nn {

/// The rows of all pairs of a sequence. Thread-safe.
class PairRows {
 public:
  virtual ~PairRows() = default;
  /// out[(i − queries.begin) · keys.size() + (j − keys.begin)] ← the row of query i and key j, for
  /// i in `queries` and j in `keys`; `out` has queries.size() · keys.size() numbers.
  virtual void fill(mask::Range queries, mask::Range keys, std::int32_t* out) const = 0;
};

/// The row of a pair is `row`(query position − key position) for the pairs of `positions`. `row`
/// must be thread-safe; the positions are borrowed.
std::shared_ptr<const PairRows> distance_rows(const PositionIds& positions,
                                              std::function<Index(Index distance)> row);

/// The row of a pair is 0 where query and key are of one segment, else 1: `queries` and `keys` have
/// the segments, which are borrowed; empty: all are one.
std::shared_ptr<const PairRows> segment_rows(std::span<const Index> queries,
                                             std::span<const Index> keys);

}  // namespace masque::nn
