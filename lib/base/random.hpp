// Counter-based random numbers: the value at a place is a function of its key and the place alone,
// so that any thread count, shard or batch draws the same.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace masque {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Philox 4×32 with 10 rounds: four words for a 128-bit counter and a 64-bit key.
/// Salmon et al. 2011, doi:10.1145/2063384.2063405.
PhiloxBlock philox(PhiloxBlock counter, std::uint64_t key);

/// A stream of numbers named by (seed, purpose, item). Copyable; random access by index.
class RandomStream {
 public:
  /// purpose  what the numbers are for, e.g. a tensor's name; streams with other purposes are
  ///          independent.
  RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t item = 0);

  /// The i-th block of four words.
  PhiloxBlock block(std::uint64_t i) const;

  /// The stream of the same seed and purpose for another item.
  RandomStream for_item(std::uint64_t item) const {
    RandomStream other = *this;
    other.item_ = item;
    return other;
  }

  /// Fills out[0 … n) with words: word i is word i mod 4 of block ⌊i/4⌋, from block 0.
  void words(std::size_t n, std::uint32_t* out) const { words(0, n, out); }
  /// The same, from block `first`.
  void words(std::uint64_t first, std::size_t n, std::uint32_t* out) const;

  /// Fills out[0 … n) with the standard normal values number `first` … `first + n − 1`.
  ///
  /// Box–Muller on 32-bit uniforms with our own logarithm and sine, which use only + − × ÷ and √:
  /// the same bits on every machine. |value| ≤ 6.7. Thread-safe.
  void normal(std::uint64_t first, std::size_t n, double* out) const;

 private:
  std::uint64_t key_;
  std::uint64_t item_;
};

/// Whole numbers from a counter-based stream, drawn one after the other: the same on every machine.
class Draw {
 public:
  Draw(std::uint64_t seed, std::string_view purpose, std::uint64_t item = 0)
      : stream_(seed, purpose, item) {}
  explicit Draw(const RandomStream& stream) : stream_(stream) {}
  /// Uniform in 0 … n − 1, without bias; n from 1.
  Index below(Index n);
  /// Fills `out` with what as many calls of below(n) return, in a fraction of the time.
  void below(Index n, std::span<std::uint32_t> out);
  /// Uniform among all 32-bit words.
  std::uint32_t word() { return next(); }
  /// Uniform in [0, 1), 32 bits.
  double uniform() { return next() * 0x1p-32; }

 private:
  std::uint32_t next();
  RandomStream stream_;
  PhiloxBlock block_{};
  std::uint64_t used_ = 0;
};

/// A uniform order of 0 … n − 1 (Fisher and Yates): out[r] is the element of rank r.
std::vector<Index> random_order(Index n, Draw& draw);

/// `count` of 0 … n − 1, uniformly without repetition, as flags.
std::vector<bool> random_subset(Index n, Index count, Draw& draw);

}  // namespace masque
