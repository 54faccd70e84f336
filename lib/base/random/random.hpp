// Counter-based random numbers: the value at a place is a function of its key and the place alone,
// so that any thread count, shard or batch draws the same.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/random/philox.hpp"
#include "base/types.hpp"

namespace masque {

/// A stream of numbers named by (seed, purpose, item). Copyable; random access by index. Constant,
/// so thread-safe.
class RandomStream {
 public:
  /// The stream of `seed`, `purpose` and `item`. The purpose is what the numbers are for, e.g. a
  /// tensor's name; streams that differ in one of the three are independent.
  RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t item = 0);

  /// The block of four words number `i`, from 0.
  PhiloxBlock block(std::uint64_t i) const;

  /// The stream of the same seed and purpose for another `item`.
  RandomStream for_item(std::uint64_t item) const {
    RandomStream other = *this;
    other.item_ = item;
    return other;
  }

  /// Fills out[0 … n) with words: word i is word i mod 4 of block ⌊i/4⌋, from block 0.
  void words(std::size_t n, std::uint32_t* out) const { words(0, n, out); }
  /// Fills out[0 … n) in the same way, from block `first`.
  void words(std::uint64_t first, std::size_t n, std::uint32_t* out) const;

  /// Fills out[0 … n) with the standard normal values number `first` … `first + n − 1`.
  ///
  /// Box–Muller (Box and Muller 1958, "A note on the generation of random normal deviates") on
  /// 32-bit uniforms with our own logarithm and sine, which use only + − × ÷ and √: the same bits
  /// on every machine. |value| ≤ 6.7.
  void normal(std::uint64_t first, std::size_t n, double* out) const;

 private:
  std::uint64_t key_;
  std::uint64_t item_;
};

/// Whole numbers from a counter-based stream, drawn one after the other: the same on every machine.
class Draw {
 public:
  /// Draws from the begin of RandomStream(`seed`, `purpose`, `item`).
  Draw(std::uint64_t seed, std::string_view purpose, std::uint64_t item = 0)
      : stream_(seed, purpose, item) {}
  /// Draws from the begin of `stream`, which it copies.
  explicit Draw(const RandomStream& stream) : stream_(stream) {}
  /// Uniform in 0 … `n` − 1, without bias; n from 1 to 2³². Lemire 2019, arXiv:1805.10941.
  Index below(Index n);
  /// Fills `out` with what as many calls of below(`n`) return, in a fraction of the time.
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

/// Returns a uniform order of 0 … `n` − 1 (Fisher and Yates) from `n` − 1 numbers of `draw`: out[r]
/// is the element of rank r. Cost O(n).
std::vector<Index> random_order(Index n, Draw& draw);

/// Returns `count` of 0 … `n` − 1, uniformly without repetition, as flags [n], with up to n numbers
/// of `draw`. Selection sampling: Knuth, "The Art of Computer Programming" 2, 3.4.2, algorithm S.
/// Cost O(n).
std::vector<bool> random_subset(Index n, Index count, Draw& draw);

}  // namespace masque
