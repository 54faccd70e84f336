// Permutation language modelling with partial prediction: XLNet's own rule and transformers'.
#pragma once

#include "records/corruption.hpp"

namespace masque::records {

/// What make_perm draws.
struct PermOptions {
  bool hf = false;              ///< transformers' collator: [MASK] at the targets, even lengths
  double predict = 85.0 / 512;  ///< share of targets (XLNet's rule), rounded
  std::uint64_t perm_size = 0;  ///< blocks that are permuted alike; 0: the length
  std::uint64_t alpha = 6;      ///< context of a span of n targets: n · alpha / beta; from 1
  std::uint64_t beta = 1;       ///< see alpha; from 1
  bool no_spans = false;        ///< targets one by one, at random places; not with `hf`
  bool causal_blocks = false;   ///< blocks of perm_size have their own orders; not with `hf`
  std::uint64_t seed = 0;       ///< the same seed draws the same
};

/// Draws as `options` say, with the special tokens and, for `hf`, the mask token of `tokens`. Fills
/// `labels` (the targets' ids) and `mask` (xlnet_order(…), whose list is the order of the
/// hidden positions; with `causal_blocks` it holds within a block of perm_size, and a block reads
/// all tokens of the blocks before it and none of those after it, as XLNet's two segments do; `&`
/// the mask that the record had). Yang et al. 2019, arXiv:1906.08237. Throws UsageError for a share
/// that is not from 0 to 1, for alpha, beta and perm_size out of range, for `causal_blocks` without
/// perm_size, and for `hf` with either of these two or without a mask token. apply() throws
/// InputError for a record that has labels, and with `hf` for one of odd length.
std::unique_ptr<Corruption> make_perm(const PermOptions& options, TokenTable tokens);

}  // namespace masque::records
