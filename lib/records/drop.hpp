// DropToken: ordinary tokens are removed; the rest keep their positions. kexue.fm/archives/8770.
#pragma once

#include "records/corruption.hpp"

namespace masque::records {

/// What make_drop does.
struct DropOptions {
  double rate = 0.15;          ///< probability of each ordinary token to be removed
  std::uint64_t min_keep = 1;  ///< keep at least this many tokens, if necessary the first ones
  bool renumber = false;       ///< renumber positions: the ablation
  std::uint64_t seed = 0;      ///< the same seed draws the same
};

/// Removes each token that is not special in `tokens` with the probability of `options`, and notes
/// it in `dropped`. Throws UsageError for a rate that is not from 0 to 1. apply() throws InputError
/// for a record whose mask depends on positions, whose `original` has another length, or whose
/// `cu_seqlens` end beyond the ids.
std::unique_ptr<Corruption> make_drop(const DropOptions& options, TokenTable tokens);

/// What make_mae does.
struct MaeOptions {
  double ratio = 0.75;         ///< share of the ordinary tokens, rounded, that are dropped
  std::uint64_t min_keep = 1;  ///< as of DropOptions
  std::uint64_t seed = 0;      ///< the same seed draws the same
};

/// Masked autoencoding: drops an exact share, that of `options`, of the tokens that are not special
/// in `tokens`; `dropped` are the targets. He et al. 2021, arXiv:2111.06377. Throws as make_drop,
/// for a ratio.
std::unique_ptr<Corruption> make_mae(const MaeOptions& options, TokenTable tokens);

}  // namespace masque::records
