// Position terms that depend on the distance alone: what T5 and ALiBi share.
#pragma once

#include <functional>

#include "nn/position/position.hpp"

namespace masque::nn {

/// The smallest and largest key − query of positions, both inclusive.
struct OffsetBounds {
  Index least = 0;  ///< smallest key − query
  Index most = 0;   ///< largest key − query
  /// Number of offsets from least to most; 0 without pairs.
  Index count() const { return most - least + 1; }
};
/// The bounds of all pairs of `positions`; {0, −1} without pairs.
OffsetBounds offset_bounds(const PositionIds& positions);

/// Whether each of `positions` is one more than the one before.
bool consecutive(std::span<const Index> positions);

/// Whether a table over all offsets within `bounds` has at most four entries for each of
/// `positions`, queries and keys.
bool worth_a_table(const OffsetBounds& bounds, const PositionIds& positions);

/// Terms b(i, j) = `value`(head, key position − query position), which must be thread-safe. Where
/// `positions` are dense a table over the offsets of each head, made when the head begins; else
/// `value` is called for every pair. The arrays of positions are borrowed.
template <class T>
std::unique_ptr<ScoreBias<T>> offset_bias(std::function<T(Index head, Index offset)> value,
                                          PositionIds positions);

}  // namespace masque::nn
