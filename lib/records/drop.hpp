// DropToken: ordinary tokens are removed; the rest keep their positions. kexue.fm/archives/8770.
#pragma once

#include "records/corruption.hpp"

namespace masque::records {

struct DropOptions {
  double rate = 0.15;
  std::uint64_t min_keep = 1;  ///< keep at least this many tokens, if necessary the first ones
  bool renumber = false;       ///< renumber positions: the ablation
  std::uint64_t seed = 0;
};

/// Removes each ordinary token with probability `rate` and notes it in `dropped`. Throws UsageError
/// for a rate that is not from 0 to 1. apply() throws InputError for a record whose mask depends on
/// positions, whose `original` has another length, or whose `cu_seqlens` end beyond the ids.
std::unique_ptr<Corruption> make_drop(const DropOptions& options, TokenTable tokens);

struct MaeOptions {
  double ratio = 0.75;  ///< of the ordinary tokens, rounded, that are dropped
  std::uint64_t min_keep = 1;
  std::uint64_t seed = 0;
};

/// Masked autoencoding: drops an exact share; `dropped` are the targets. arXiv:2111.06377. Throws
/// as make_drop, for a ratio.
std::unique_ptr<Corruption> make_mae(const MaeOptions& options, TokenTable tokens);

}  // namespace masque::records
