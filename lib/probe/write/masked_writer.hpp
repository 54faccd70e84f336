// The masks of texts, written in passes of a masked model: the loop under every way to do so.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/random.hpp"
#include "model/model.hpp"
#include "probe/score/sentence.hpp"
#include "probe/write/sampling.hpp"

namespace masque::probe {

/// A text with masks.
struct MaskedText {
  std::uint64_t id = 0;  ///< of the line: keys the random numbers
  Sentence sentence;
  std::vector<Index> places;  ///< of the masks among the sentence's ids, ascending; at least one
};

/// A text whose masks are being written.
struct Draft {
  Draft(const MaskedText& masked, Index number, const RandomStream& draws);
  Index masks() const { return std::ssize(tokens); }

  const MaskedText* text;                 ///< borrowed
  Index sample;                           ///< which of the text's drafts, from 0
  RandomStream stream;                    ///< of its draws
  std::vector<TokenId> tokens;            ///< one a mask; the mask token where none was put yet
  std::vector<double> log_probabilities;  ///< nats, of each token when it was put there
};

/// What one pass over a draft does.
struct MaskedPass {
  /// These masks (their numbers in the draft, ascending) are hidden, whatever stood there, and each
  /// gets a token. None: the draft is finished.
  std::vector<Index> masks;
  /// The text that is read ends its masks after so many; what follows them stays. 0: all are read.
  Index shown = 0;
  SamplingOptions sampling;
  Index draw = 0;  ///< the token of mask i is decided by uniform_at(stream, draw, i)
};

/// The next pass over a draft, counted from 0.
using NextPass = std::function<MaskedPass(const Draft& draft, Index pass)>;

struct MaskedWriterOptions {
  std::vector<TokenId> targets;  ///< the only tokens that are put there; empty: all
  std::vector<TokenId> never;    ///< tokens that are not
  Index batch_tokens = 8192;     ///< tokens run together
  /// The mask of a sequence, where its words decide it; may throw.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
};

/// Runs passes over all drafts, the first over each, then the second …, until `next` has no more
/// for any. What becomes of a draft does not depend on the others nor on batch_tokens.
/// Probabilities are those among all tokens at temperature 1. Memory: a batch. Throws InputError as
/// Model::run, and Interrupted.
void write_masks(const model::Model& model, const NextPass& next,
                 const MaskedWriterOptions& options, std::span<Draft> drafts);

}  // namespace masque::probe
