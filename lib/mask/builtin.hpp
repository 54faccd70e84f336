// The formulas that the named masks are put together from. Each has an exact cover and fast bits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask.hpp"

namespace masque::mask {

inline constexpr Index kUnbounded = Index{1} << 40;

/// For sums that count pairs: no index is negative.
inline std::uint64_t as_unsigned(Index n) { return static_cast<std::uint64_t>(n); }

/// lo ≤ i + offset − j ≤ hi: causal (0, ∞), window(w) (−w, w), diagonal (0, 0) …
Mask band(Lengths lengths, Index lo, Index hi, Index offset = 0);

/// (i + offset − j) mod period = 0.
Mask modular(Lengths lengths, Index period, Index offset = 0);

/// lo ≤ ⌊(i + offset)/c⌋ − ⌊(j + key_offset)/c⌋ ≤ hi.
Mask chunk_band(Lengths lengths, Index c, Index lo, Index hi, Index offset = 0,
                Index key_offset = 0);

/// Keys with visible[j]; every row alike.
Mask columns(Lengths lengths, const std::vector<bool>& visible);

/// Rows with readers[i] read everything, others nothing.
Mask rows(Lengths lengths, const std::vector<bool>& readers);

/// group_of_query[i] = group_of_key[j].
Mask same_group(const std::vector<Index>& query_groups, const std::vector<Index>& key_groups);

/// key_rank[j] + margin ≤ query_rank[i]: permutations; margin 0 lets a row read itself, 1 not.
Mask rank_order(std::vector<Index> query_ranks, const std::vector<Index>& key_ranks, Index margin);

/// Every pair on its own with probability p: bit (i, j) depends on the seed and the pair alone.
Mask random_pairs(Lengths lengths, double p, std::uint64_t seed);

/// Blocks of `size` × `size` cells: cell (i, j) as (⌊i/size⌋, ⌊j/size⌋) of `blocks`.
Mask blown_up(Lengths lengths, Mask blocks, Index size);

}  // namespace masque::mask
