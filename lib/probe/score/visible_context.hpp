// The loss of tokens by how many tokens of the text a model sees, and how far the nearest of them
// is.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "probe/score/batching.hpp"
#include "probe/score/score_kind.hpp"
#include "probe/score/sequence.hpp"
#include "probe/statistics/ratio_mean.hpp"

namespace masque::probe {

struct VisibleContextRequest {
  std::vector<Index> visible;  ///< how many tokens are seen; different numbers from 0 on
  Index draws = 1;             ///< of visible tokens, for each text
  std::optional<TokenId> mask;
  std::uint64_t seed = 0;
  Index batch_tokens = 8192;
};

/// Tokens that are predicted from `visible` others.
struct VisibleContextRow {
  Index visible = 0;
  /// Log2 of the largest distance to the nearest visible token, which is more than half of it; −1:
  /// all tokens.
  Index distance = -1;
  RatioMean loss;  ///< nats; lines are those in which there is such a token

  /// "all", "1", "2", "3-4", "5-8", …
  std::string distance_text() const;
};

/// For each text and draw, the tokens get a random order; of each number v the first v tokens are
/// visible, with those of the template, and all others are predicted from them, in one pass. How
/// others are hidden is what the model was trained with: [MASK] in their place for a masked model
/// of one stream; of T-TA and of two streams (XLNet) nothing reads them. What comes out depends
/// neither on batches nor on threads. Memory: a batch, and the rows. For one thread.
class VisibleContext {
 public:
  /// `model` must stay, `options` are those with which it was opened. Throws InputError for a model
  /// that predicts from no free choice of tokens (causal ones, two towers, discriminators), and
  /// without a mask token where one is needed.
  VisibleContext(const model::Model& model, const model::ModelOptions& options,
                 const VisibleContextRequest& request);

  /// Adds a text; runs batches as they fill. Cost: a pass for each draw and number below that of
  /// the text's tokens. Throws as Model::run does.
  void add(const Sequence& sequence);
  /// Runs what waits.
  void flush();
  /// By number, in it all tokens first, then by distance; rows without a token are left out.
  std::vector<VisibleContextRow> rows() const;

 private:
  /// A pass over a text.
  struct Pass {
    std::size_t visible = 0;       ///< place in VisibleContextRequest::visible
    std::vector<Index> distances;  ///< of its predicted tokens, as rows have them; −1: none
    std::vector<double> log_probabilities;
  };
  /// A text whose passes are not all done.
  struct Pending {
    std::deque<Pass> passes;  ///< their numbers must stay where they are
    std::uint64_t last_job = 0;
  };

  void add_pass(const Sequence& sequence, const std::vector<Index>& order, std::size_t visible,
                Pending& pending);
  void deliver();
  void take(const Pending& pending);

  VisibleContextRequest request_;
  ScoreKind kind_;
  bool two_streams_;
  std::deque<Pending> pending_;
  std::uint64_t jobs_ = 0;
  JobRunner runner_;
  std::vector<std::vector<RatioMean>> losses_;  ///< by number, by distance from −1 on
};

}  // namespace masque::probe
