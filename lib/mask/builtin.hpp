// The formulas that the named masks are put together from. Each has an exact cover and fast bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask.hpp"

namespace masque::mask {

/// Stands for ∞ in band() and chunk_band(): greater than any position.
inline constexpr Index kUnbounded = Index{1} << 40;

/// `n`, which is not negative, for sums that count pairs.
inline std::uint64_t as_unsigned(Index n) { return static_cast<std::uint64_t>(n); }

/// A mask of `lengths` with lo ≤ i + offset − j ≤ hi: causal (0, ∞), window(w) (−w, w), diagonal
/// (0, 0) …
Mask band(Lengths lengths, Index lo, Index hi, Index offset = 0);

/// A mask of `lengths` with (i + offset − j) mod period = 0; `period` from 1.
Mask modular(Lengths lengths, Index period, Index offset = 0);

/// A mask of `lengths` with lo ≤ ⌊(i + offset)/c⌋ − ⌊(j + key_offset)/c⌋ ≤ hi; `c` from 1, offsets
/// from 0.
Mask chunk_band(Lengths lengths, Index c, Index lo, Index hi, Index offset = 0,
                Index key_offset = 0);

/// A mask of `lengths` that shows the keys with visible[j], one flag a key; every row alike.
Mask columns(Lengths lengths, const std::vector<bool>& visible);

/// A mask of `lengths` whose rows with readers[i], one flag a query, read everything, others
/// nothing.
Mask rows(Lengths lengths, const std::vector<bool>& readers);

/// query_groups[i] = key_groups[j]; the lengths are those of the lists. Numbers below 2^31.
Mask same_group(const std::vector<Index>& query_groups, const std::vector<Index>& key_groups);

/// key_ranks[j] + margin ≤ query_ranks[i]: permutations; `margin` 0 lets a row read itself, 1 not.
/// The lengths are those of the lists. Numbers below 2^31.
Mask rank_order(std::vector<Index> query_ranks, const std::vector<Index>& key_ranks, Index margin);

/// A mask of `lengths` with every pair on its own with probability `p`, rounded to a multiple of
/// 2^-32: bit (i, j) depends on `seed`, the pair and the number of keys alone.
Mask random_pairs(Lengths lengths, double p, std::uint64_t seed);

/// A mask of `lengths` from blocks of `size` × `size` cells: cell (i, j) as (⌊i/size⌋, ⌊j/size⌋) of
/// `blocks`.
Mask blown_up(Lengths lengths, Mask blocks, Index size);

}  // namespace masque::mask
