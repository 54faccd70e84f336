// The noise of denoising sequence-to-sequence models. BART, Lewis et al. 2019, arXiv:1910.13461.
#pragma once

#include "records/corruption.hpp"

namespace masque::records {

/// The kinds of noise.
enum class BartNoise {
  kMask,     ///< tokens become the mask token
  kDelete,   ///< tokens are deleted, positions counted anew
  kInfill,   ///< spans of Poisson length (0 too) become one mask token
  kPermute,  ///< sentences (`doc`, else split at a token) in random order
  kRotate,   ///< the sequence begins at a random token
};

/// What make_bart does.
struct BartOptions {
  BartNoise noise = BartNoise::kInfill;  ///< one kind alone
  double rate = 0.3;                     ///< share of ordinary tokens; for kMask, kDelete, kInfill
  double lambda = 3;                     ///< mean span length
  TokenId sentence_end = -1;             ///< for kPermute: the token that ends a sentence
  std::uint64_t seed = 0;                ///< the same seed draws the same
};

/// Changes ids as `options` say, and keeps the original ids in `original`, the target of the
/// decoder; removes `pos`, `seg`, `words` and `doc`. A special token at the start and one at the
/// end keep their positions; special tokens of `tokens` are neither hidden nor
/// deleted. Throws UsageError for a
/// rate that is not from 0 to 1, a lambda that is not from 0 to 100, and kMask or kInfill without a
/// mask token. apply() throws InputError for a record that has `original`, labels, weights, dropped
/// tokens, `cu_seqlens` or a mask.
std::unique_ptr<Corruption> make_bart(const BartOptions& options, TokenTable tokens);

}  // namespace masque::records
