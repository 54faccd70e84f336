// Masks that hide single tokens from all others.
#pragma once

#include <vector>

#include "mask/mask.hpp"

namespace masque::probe {

/// Of `length` tokens, the keys that are `hidden` are read by none but, with `self`, themselves.
/// Cost: O(length).
mask::Mask hiding(Index length, const std::vector<Index>& hidden, bool self);

}  // namespace masque::probe
