// Sixteen floats side by side: sums over a row run in sixteen lanes that are added in a fixed
// order, so that every instruction set gives the same bits.
#pragma once

#include <cstring>

#include "base/types.hpp"

namespace masque::kernel {

/// Element-wise + − × ÷ work on it; g++ splits it where registers are shorter.
using Lanes = float __attribute__((vector_size(64), aligned(4), may_alias));
constexpr Index kLanes = 16;

/// Σ lanes: halves onto halves.
inline float lane_sum(const Lanes& lanes) {
  float parts[kLanes];
  std::memcpy(parts, &lanes, sizeof parts);
  for (Index width = kLanes / 2; width > 0; width /= 2) {
    for (Index i = 0; i < width; ++i) parts[i] += parts[i + width];
  }
  return parts[0];
}

inline void load_lanes(const float* from, Lanes& to) { std::memcpy(&to, from, sizeof to); }

/// The last count < 16 elements, then zeros.
inline void load_lanes(const float* from, Index count, Lanes& to) {
  float parts[kLanes] = {};
  for (Index i = 0; i < count; ++i) parts[i] = from[i];
  std::memcpy(&to, parts, sizeof to);
}

}  // namespace masque::kernel
