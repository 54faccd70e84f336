// How the units of one axis of a tensor become those of a wider model: copies, next to each other,
// and the share of its outgoing weight that each copy gets.
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

  Index size() const { return static_cast<Index>(from.size()); }
};

/// An axis that stays as it is.
UnitCopies kept_units(Index elements);

/// An axis of units of `block` elements (a head is a unit of head_size), each of which is there
/// `factor` times in place: a b → a a b b. `elements` is a multiple of `block`.
UnitCopies repeated_units(Index elements, Index block, Index factor);

/// Appends the units of a tensor that stands below in the same axis, which begins at `first` before
/// growth.
void append_units(UnitCopies& units, const UnitCopies& below, Index first);

/// Gives every copy 1/factor of the weight. Exact in binary numbers if `factor` is a power of two.
void share_equally(UnitCopies& units, Index factor);

/// Gives the copies of an element shares that sum to 1, drawn between 1/(3 factor) and 3/factor, of
/// its own for each element.
void share_unequally(UnitCopies& units, Index factor, const RandomStream& stream);

}  // namespace masque::grow
