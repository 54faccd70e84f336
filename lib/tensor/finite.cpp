#include "tensor/finite.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/processor/vectorize.hpp"

namespace masque {

namespace {

// Not finite: all bits of the exponent are set. Adding one unit to the exponent of the magnitude
// then carries into the sign bit, so that a block is one chain of ORs.
template <class Bits, class T>
Bits carries(const T* values, std::size_t n, Bits unit) {
  constexpr Bits kMagnitude = ~Bits{0} >> 1;
  Bits any = 0;
  for (std::size_t i = 0; i < n; ++i) any |= (std::bit_cast<Bits>(values[i]) & kMagnitude) + unit;
  return any & ~kMagnitude;
}

template <class T>
bool block_finite(const T* values, std::size_t n) {
  if constexpr (sizeof(T) == 4) {
    return carries<std::uint32_t>(values, n, std::uint32_t{1} << 23) == 0;
  } else {
    return carries<std::uint64_t>(values, n, std::uint64_t{1} << 52) == 0;
  }
}

template <class T>
std::optional<std::size_t> find(std::span<const T> values) {
  constexpr std::size_t kBlock = 4096;
  for (std::size_t begin = 0; begin < values.size(); begin += kBlock) {
    const std::size_t n = std::min(kBlock, values.size() - begin);
    if (vectorized<block_finite<T>>(values.data() + begin, n)) continue;
    for (std::size_t i = begin;; ++i) {
      if (!std::isfinite(values[i])) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> first_not_finite(std::span<const float> values) { return find(values); }
std::optional<std::size_t> first_not_finite(std::span<const double> values) { return find(values); }

}  // namespace masque
