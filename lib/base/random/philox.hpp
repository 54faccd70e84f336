// Philox, the function from counters to random words: one block, or many at once in vectors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace masque {

/// Four words of 32 bits: a counter, least significant word first, or the random words for it.
using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Philox 4×32 with 10 rounds: returns four random words for a 128-bit `counter` and a 64-bit
/// `key`. Salmon et al. 2011, doi:10.1145/2063384.2063405.
PhiloxBlock philox(PhiloxBlock counter, std::uint64_t key);

/// Fills out[0 … n) with the words of the blocks philox({i, item}, key) for i = first, first + 1 …
/// in order, where `i` and `item` are two words each, the less significant one first. The same bits
/// as philox() on every instruction set, in an eighth of its time or less.
void philox_words(std::uint64_t first, std::uint64_t item, std::uint64_t key, std::size_t n,
                  std::uint32_t* out);

}  // namespace masque
