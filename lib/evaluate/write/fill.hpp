// Fills the masks of texts with a masked model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/string/name_table.hpp"
#include "evaluate/score/sentence.hpp"
#include "evaluate/write/masked_writer.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// How several masks of one text depend on each other.
enum class JointFill {
  kNone,         ///< each independently, with the others masked
  kLeftToRight,  ///< the most probable token of each, given those before it, with later ones masked
  kBeam,         ///< in the same order, keeping the num_beams most probable beginnings
  kGibbs,        ///< sampled repeatedly, each given all others (Wang and Cho 2019,
                 ///< arXiv:1902.04094)
};

/// The names of all ways: "none", "left-to-right", "beam", "gibbs".
NameTable<JointFill> joint_fill_names();

/// How fill() fills masks.
struct FillOptions {
  Index top_k = 5;                     ///< fillings of a mask, or of a text
  std::vector<TokenId> targets;        ///< the only tokens that are put there; empty: all
  JointFill joint = JointFill::kNone;  ///< how masks of a text depend on each other
  Index num_beams = 5;                 ///< for kBeam: number of beams, at least top_k
  Index sweeps = 100;                  ///< for kGibbs: how many times every mask is drawn
  double temperature = 1;              ///< for kGibbs: logits are divided by it; > 0
  std::uint64_t seed = 0;              ///< for kGibbs: seed of the draws
  Index batch_tokens = 8192;           ///< tokens run together
  /// The mask of a sequence, where its words decide it; may throw.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
};

/// The places of the token `mask` among the ids of `sentence`, in its text, not in its template;
/// ascending.
std::vector<Index> places_of(const Sentence& sentence, TokenId mask);

/// A token for one mask.
struct Filling {
  TokenId id = 0;          ///< the token
  double probability = 0;  ///< softmax over the whole vocabulary, whatever the targets
};

/// Tokens for all masks of a text.
struct JointFilling {
  std::vector<TokenId> ids;  ///< one a mask
  /// In nats: Σ log p of each token when it was filled in; for kGibbs the logarithm of the share of
  /// sweeps that ended with these tokens.
  double log_probability = 0;
};

/// A text's fillings, the most probable first; of equal ones the one with the lower ids first.
struct FilledText {
  std::vector<std::vector<Filling>> masks;  ///< kNone: of each mask
  std::vector<JointFilling> joint;          ///< the other ways: of the text
};

/// Throws InputError for a `design` without a masked head, one of two streams, whose masks hide
/// tokens, and one with latent bottlenecks.
void check_filling(const model::Design& design);

/// Fills the masks of `texts` with `model` as `options` say, one result each in their order; a
/// result depends neither on the other texts nor on batch_tokens. Passes over a text of m masks: 1
/// of kNone; m of kLeftToRight; at most m · num_beams of kBeam; m · sweeps of kGibbs. Memory: a
/// batch, the texts, and of kBeam num_beams fillings of each. Throws InputError as Model::run, and
/// Interrupted.
std::vector<FilledText> fill(const model::Model& model, std::span<const MaskedText> texts,
                             const FillOptions& options);

}  // namespace masque::evaluate
