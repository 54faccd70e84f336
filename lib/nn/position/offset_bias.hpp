// Position terms that depend on the distance alone: what T5 and ALiBi share.
#pragma once

#include <functional>

#include "nn/position.hpp"

namespace masque::nn {

/// The smallest and largest key − query of positions, both inclusive.
struct OffsetBounds {
  Index least = 0;
  Index most = 0;
  Index count() const { return most - least + 1; }
};
OffsetBounds offset_bounds(const PositionIds& positions);

/// Whether each position is one more than the last.
bool consecutive(std::span<const Index> positions);

/// Whether a table over all offsets is not much longer than the positions.
bool worth_a_table(const OffsetBounds& bounds, const PositionIds& positions);

/// b(i, j) = value(head, key position − query position). `value` must be thread-safe. Where
/// positions are dense a table over the offsets of each head, made when the head begins; else
/// `value` is called for every pair.
template <class T>
std::unique_ptr<ScoreBias<T>> offset_bias(std::function<T(Index head, Index offset)> value,
                                          PositionIds positions);

}  // namespace masque::nn
