// Masks that hide single tokens from all others.
#pragma once

#include <vector>

#include "mask/mask.hpp"

namespace masque::probe {

/// A mask of `length` tokens in which no query reads the keys in `hidden`, except, with `self`,
/// each of them itself. Cost: O(length).
mask::Mask hiding(Index length, const std::vector<Index>& hidden, bool self);

}  // namespace masque::probe
