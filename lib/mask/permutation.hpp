// Permutation language modelling with partial prediction: who is selected, who ranks where, and the
// mask that follows. The masks `xlnet` and `xlnet_hf` and the records of `droptoken perm` are made
// here. XLNet calls partial prediction `_local_perm`.
#pragma once

#include <string_view>
#include <vector>

#include "mask/mask.hpp"
#include "mask/sampler.hpp"

namespace masque::mask {

/// The ranks of `order`, whose numbers are not negative: rank[order[r]] = r. Throws UsageError
/// "`name`: …" unless it is a permutation of 0 … n − 1.
std::vector<Index> ranks_from_order(const std::vector<Index>& order, Index n,
                                    std::string_view name);

/// What a permutation objective drew for one sequence.
struct PermutationDraw {
  std::vector<bool> selected;    ///< positions to predict
  std::vector<Index> self_rank;  ///< of a row
  std::vector<Index> rank;       ///< of a key; −1 for ordinary unselected ones
  std::vector<bool> hidden;  ///< keys that rank matters for (selected, for XLNet functional too)

  /// Row i may read j unless self_rank(i) ≤ rank(j) and j is hidden.
  Mask mask() const;
};

/// What xlnet_permutation draws.
struct PermutationRequest {
  Index length = 0;                   ///< tokens of the sequence
  std::uint64_t seed = 0;             ///< the same seed draws the same
  Index perm_size = 0;                ///< one shuffle for every block of this size; 0: the length
  bool own_orders = false;            ///< a shuffle for each block of perm_size instead
  SpanSelection selection;            ///< which positions are targets
  std::vector<bool> functional = {};  ///< [SEP] and [CLS]; empty: none
};

/// XLNet's _local_perm, as `request` says: an unselected ordinary token reads unselected ordinary
/// ones only; a target reads these, and selected or functional ones of smaller rank, not itself.
/// arXiv:1906.08237.
PermutationDraw xlnet_permutation(const PermutationRequest& request);

/// transformers' collator: the second half is ordered like the first and ranks after it; ordinary
/// unselected ones rank −1; `functional` tokens (empty: none) are never hidden as keys. `length` is
/// even; the same `seed` draws the same.
PermutationDraw xlnet_hf_permutation(Index length, std::uint64_t seed,
                                     const std::vector<bool>& functional = {});

}  // namespace masque::mask
