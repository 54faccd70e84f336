// The masks of texts, written in passes of a masked model: the loop under every way to do so.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/random/random.hpp"
#include "evaluate/score/sentence.hpp"
#include "evaluate/write/generation.hpp"
#include "evaluate/write/sampling.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// A text with masks.
struct MaskedText {
  std::uint64_t id = 0;  ///< number of the line: keys the random numbers
  Sentence sentence;     ///< its tokens, with masks
  /// Places of the masks among the sentence's ids, ascending; at least one.
  std::vector<Index> places;
};

/// A text whose masks are being written.
struct Draft {
  /// Draft `number` (the member `sample`) of `masked`, which must outlive it, with the tokens that
  /// stand there. `draws`: as the member `stream`.
  Draft(const MaskedText& masked, Index number, std::optional<RandomStream> draws = std::nullopt);
  /// Number of masks.
  Index masks() const { return std::ssize(tokens); }

  const MaskedText* text;  ///< borrowed
  Index sample;            ///< which of the text's drafts, from 0
  /// Random numbers of its draws; none: each pass has its own.
  std::optional<RandomStream> stream;
  std::vector<TokenId> tokens;            ///< one a mask; the mask token where none was put yet
  std::vector<double> log_probabilities;  ///< nats, of each token when it was put there
  /// Σ of log_probabilities over all tokens that were put, also those that were hidden again; added
  /// in the order in which they were put.
  double put_log_probability = 0;
};

/// By what the tokens of a pass are ranked, of which some are put in their places. Probabilities
/// are those of write_masks().
enum class TokenRank {
  kProbability,  ///< that of the token
  kMargin,       ///< the largest probability less the second largest: Kim et al. 2025,
                 ///< arXiv:2502.06768
  kEntropy,      ///< −entropy, nats
  kUniform,      ///< MaskedPass::rank
};

/// What one pass over a draft does.
struct MaskedPass {
  /// These masks (their numbers in the draft, ascending) are hidden, whatever stood there, and a
  /// token is chosen for each. None: the draft is finished.
  std::vector<Index> masks;
  /// The text that is read ends its masks after so many; what follows them stays. 0: all are read.
  Index shown = 0;
  /// So many of the chosen tokens are put in their places, in the order of `kept_by`, the highest
  /// first, of equal ones the first mask. The others stay masks. 0: all, from left to right.
  Index kept = 0;
  TokenRank kept_by = TokenRank::kProbability;  ///< used with `kept` alone
  /// A number in [0, 1) for each mask. Of kUniform: what it is ranked by.
  std::function<double(Index mask)> rank = {};
  /// Above 0: the `kept` tokens are drawn by `rank` instead, one after the other without
  /// replacement, with probabilities ∝ exp(c / rank_temperature), c what they would be ranked by
  /// (the probability itself). Not with kUniform. Dream's alg_temp.
  double rank_temperature = 0;
  SamplingOptions sampling;  ///< how a token is chosen
  /// The number in [0, 1) that decides the token of a mask: used with sampling.do_sample alone.
  std::function<double(Index mask)> uniform = {};
};

/// For MaskedPass::uniform: the draws number `draw` of the stream of `draft`, which must have one
/// and must outlive the function.
std::function<double(Index mask)> draws_of(const Draft& draft, Index draw);

/// The next pass over a draft, counted from 0. Gets the elements of the span of write_masks().
using NextPass = std::function<MaskedPass(const Draft& draft, Index pass)>;

/// Which tokens write_masks() puts, and how it runs texts.
struct MaskedWriterOptions {
  std::vector<TokenId> targets;          ///< the only tokens that are put there; empty: all
  std::vector<TokenId> never;            ///< tokens that are not
  std::optional<TokenId> excluded = {};  ///< a token that is not, and that has the probability 0
  Index batch_tokens = 8192;             ///< tokens run together
  /// The mask of a sequence, where its words decide it; may throw.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
  /// For a model of block diffusion, without mask_of: the b of its mask causal_blocks(b). Each pass
  /// hides masks of one block alone, none of an earlier one than the pass before, and reads that
  /// block only: keys and values of finished blocks are kept. That is exact, since they read no
  /// later token. All drafts run together then; memory as of KeyValueCache. 0: whole texts are
  /// read.
  Index cached_block_size = 0;
};

/// Runs passes of `model` over all `drafts` as `options` say, the first over each, then the second
/// …, until `next` has no more for any. What becomes of a draft does not depend on the others nor
/// on batch_tokens. Probabilities are those among all tokens but `excluded`, at temperature 1.
/// Memory: a batch. Throws InputError as Model::run, and Interrupted.
void write_masks(const model::Model& model, const NextPass& next,
                 const MaskedWriterOptions& options, std::span<Draft> drafts);

/// `draft`, which is finished, as a text whose tokens have the Σ log p `log_probability` in all.
Generated written(const Draft& draft, double log_probability);

}  // namespace masque::evaluate
