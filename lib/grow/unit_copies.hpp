// How the units of one axis of a tensor become those of a wider model: copies, and the share of its
// outgoing weight that each copy gets.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "base/types.hpp"

namespace masque::grow {

/// One axis after growth: element i is a copy of element from[i] before it.
struct UnitCopies {
  std::vector<Index> from;
  /// What element i is multiplied by; empty: 1.
  std::vector<double> share;
  /// Whether element i comes from the same tensor of the next layer; empty: none does.
  std::vector<bool> next;

  Index size() const { return static_cast<Index>(from.size()); }
};

/// An axis that stays as it is.
UnitCopies kept_units(Index count);

/// Units each of which is there `factor` times in place: a b → a a b b.
UnitCopies repeated_units(Index count, Index factor);

/// `after` units: each as often as all others, and drawn ones once more, next to each other in
/// order. Of a multiple of `count` those of repeated_units.
UnitCopies drawn_units(Index count, Index after, const RandomStream& stream);

/// The elements of units of `block` elements each, without shares: a head is a unit of head_size.
UnitCopies in_blocks(const UnitCopies& units, Index block);

/// Appends the units of a tensor that stands below in the same axis, which begins at `first` before
/// growth.
void append_units(UnitCopies& units, const UnitCopies& below, Index first);

/// Gives each of k copies 1/k of the weight. Exact in binary numbers if k is a power of two.
void share_equally(UnitCopies& units);

/// Gives the copies of an element shares that sum to 1, none more than three times another, drawn
/// for each element.
void share_unequally(UnitCopies& units, const RandomStream& stream);

}  // namespace masque::grow
