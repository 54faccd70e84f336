// Sums over a row in plain loops run in sixteen lanes that are added in a fixed order, so that
// every instruction set gives the same bits. Vector code has groups (group-inl.hpp).
#pragma once

#include "base/types.hpp"

namespace masque::kernel {

/// Number of lanes of a sum.
constexpr Index kLanes = 16;

/// The sum of the kLanes numbers of `lanes`, which it overwrites: halves are added onto halves.
inline float lane_sum(float* lanes) {
  for (Index width = kLanes / 2; width > 0; width /= 2) {
    for (Index i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

}  // namespace masque::kernel
