// Texts written by masked diffusion: all tokens are masks at first, and a few at a time are filled
// in.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/string/name_table.hpp"
#include "evaluate/write/generation.hpp"
#include "evaluate/write/masked_writer.hpp"
#include "evaluate/write/sampling.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// Which masks are filled in at a step from time t to s. Of all but kRandom the number of them is
/// fixed.
enum class UnmaskOrder {
  kConfidence,  ///< those whose token has the highest probability (LLaDA, Nie et al. 2025,
                ///< arXiv:2502.09992, low-confidence remasking; maskgit_plus of Dream, Ye et al.
                ///< 2025, arXiv:2508.15487)
  kMargin,      ///< those of the largest margin: TokenRank::kMargin (topk_margin of Dream)
  kEntropy,     ///< those of the smallest entropy (entropy of Dream)
  kShuffled,    ///< random ones (LLaDA, random remasking)
  kRandom,  ///< each with probability (t − s)/t: the ancestral sampler (MDLM, Sahoo et al. 2024,
            ///< arXiv:2406.07524; origin of Dream)
};

/// At what times the steps of a block are, which says how many masks they fill in.
enum class UnmaskTimes {
  kEven,  ///< from 1 to 0 at equal distances: as many at every step, the first ones one more
          ///< (LLaDA)
  /// From 1 to 0.001 at equal distances, in float: of m masks ⌊m (t − s)/t⌋, at the last step all
  /// that are left (Dream).
  kToEpsilon,
};
/// The names of both: "even", "epsilon".
NameTable<UnmaskTimes> unmask_times_names();

/// How unmask() fills masks.
struct UnmaskOptions {
  UnmaskOrder order = UnmaskOrder::kConfidence;  ///< which masks come first
  UnmaskTimes times = UnmaskTimes::kEven;        ///< when
  /// Above 0, of kConfidence, kMargin and kEntropy: the places of a step are drawn, with
  /// probabilities ∝ exp(c / order_temperature), c the probability, the margin or −entropy (Dream's
  /// alg_temp). 0: those of the largest c.
  double order_temperature = 0;
  /// Steps of a block; 0: as many as it has masks. A step at which no mask gets its token costs
  /// nothing.
  Index iterations = 0;
  /// From left to right in blocks of so many masks, later ones still masked (LLaDA); 0: one.
  /// Not for models that read in blocks themselves (model::causal_block_size), which have their
  /// own.
  Index block_size = 0;
  SamplingOptions sampling;        ///< how a token is chosen at its place
  Index num_return_sequences = 1;  ///< texts for each text, at least 1
  std::uint64_t seed = 0;          ///< seed of places and tokens
  TokenId mask = 0;                ///< never chosen
  Index batch_tokens = 8192;       ///< tokens run together
  /// The mask of a sequence, where its words decide it; may throw.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
};

/// Throws UsageError for a block_size of `options` with a model of a `design` that reads in blocks.
void check_unmasking(const model::Design& design, const UnmaskOptions& options);

/// Fills the masks of every one of `texts`, by a `model` that check_filling() lets through, as
/// `options` say, num_return_sequences times each, in the order of texts and samples:
/// Generated::ids has a token a mask. Generated::log_probability is the sum over the tokens of log
/// p when each was put there (temperature 1, the mask token's probability 0), no likelihood of the
/// text. Draws depend on seed, text id, sample, step and place alone.
///
/// A step is a pass over the whole text. Of a model of block diffusion (causal_blocks(b)) it is a
/// pass over the block that is written: keys and values of finished blocks are kept, which is
/// exact, since they read no later token. All texts run together then; memory as of KeyValueCache.
/// Throws InputError as Model::run.
std::vector<Generated> unmask(const model::Model& model, std::span<const MaskedText> texts,
                              const UnmaskOptions& options);

}  // namespace masque::evaluate
