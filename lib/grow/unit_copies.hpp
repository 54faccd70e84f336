// How the units of one axis of a tensor become those of a wider model: copies, and the share of its
// outgoing weight that each copy gets.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "base/types.hpp"

namespace masque::grow {

/// One axis after growth: element i is a copy of element from[i] before it. All lists have an item
/// for each element after growth, or none.
struct UnitCopies {
  std::vector<Index> from;  ///< elements before growth, from 0
  /// What element i is multiplied by; empty: 1.
  std::vector<double> share;
  /// Whether element i comes from the same tensor of the next layer; empty: none does.
  std::vector<bool> next;

  /// Elements after growth.
  Index size() const { return static_cast<Index>(from.size()); }
};

/// An axis of `count` units that stays as it is.
UnitCopies kept_units(Index count);

/// `count` units each of which is there `factor` times (at least once) in place: a b → a a b b.
UnitCopies repeated_units(Index count, Index factor);

/// `after` units of `count`: each as often as all others, and those that `stream` draws once more,
/// without replacement; copies stand next to each other, in order. Of a multiple of `count` they
/// are those of repeated_units. 1 ≤ `count` ≤ `after`.
UnitCopies drawn_units(Index count, Index after, const RandomStream& stream);

/// The elements of `units` of `block` elements each, without shares and `next`: a head is a unit of
/// head_size.
UnitCopies in_blocks(const UnitCopies& units, Index block);

/// Appends to `units` those of a tensor that stands `below` in the same axis, which begins at
/// `first` before growth. Neither may have shares yet.
void append_units(UnitCopies& units, const UnitCopies& below, Index first);

/// Gives each of the k copies of an element in `units` 1/k of the weight, in place of former
/// shares. Exact in binary numbers if k is a power of two.
void share_equally(UnitCopies& units);

/// Gives the copies of an element in `units` shares that sum to 1, none more than three times
/// another, in place of former shares: `stream` draws a number for each copy.
void share_unequally(UnitCopies& units, const RandomStream& stream);

}  // namespace masque::grow
