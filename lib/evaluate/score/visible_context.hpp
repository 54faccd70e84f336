// The loss of predicted tokens as a function of how many tokens of the text are visible, and of the
// distance to the nearest visible one.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "evaluate/score/batching.hpp"
#include "evaluate/score/score_kind.hpp"
#include "evaluate/score/sequence.hpp"
#include "evaluate/statistics/summary.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// What VisibleContext measures.
struct VisibleContextRequest {
  std::vector<Index> visible;   ///< numbers of visible tokens; different, at least 0
  Index draws = 1;              ///< random sets of visible tokens for each text
  std::optional<TokenId> mask;  ///< the mask token; of masked models of one stream
  std::uint64_t seed = 0;       ///< seed of the random orders
  Index batch_tokens = 8192;    ///< most tokens of a batch; a longer text runs alone
};

/// Result for tokens that are predicted from `visible` others.
struct VisibleContextRow {
  Index visible = 0;  ///< visible tokens, those of the template not counted
  /// Tokens at a distance of up to 2^distance, and more than half of that, from the nearest visible
  /// token; −1: all tokens.
  Index distance = -1;
  RatioMean loss;  ///< nats; over the lines that have such a token

  /// "all", "1", "2", "3-4", "5-8", …
  std::string distance_text() const;
};

/// Draws a random order of the tokens for each text and draw. For each number v the first v tokens
/// and the template are visible, and all others are predicted from them in one pass. Tokens are
/// hidden as in training: by the mask token in a masked model of one stream, by attention masks in
/// a T-TA and in models of two streams (XLNet). Results depend neither on batches nor on threads.
/// Memory: a batch, and the rows. For one thread.
class VisibleContext {
 public:
  /// `model` must outlive this; `options` are those with which it was opened; `request` says which
  /// numbers are measured. Throws InputError for a model that cannot predict from an arbitrary set
  /// of tokens (causal, two towers, discriminators), and if a mask token is needed but missing.
  VisibleContext(const model::Model& model, const model::ModelOptions& options,
                 const VisibleContextRequest& request);

  /// Adds the text of `sequence`; runs batches as they fill. Cost: a pass for each draw and number
  /// below that of the text's tokens. Throws as Model::run does, and InputError for a sequence with
  /// its own mask.
  void add(const Sequence& sequence);
  /// Runs what waits.
  void flush();
  /// Rows by number of visible tokens; for each, all tokens first, then by distance. Rows without a
  /// token are omitted.
  std::vector<VisibleContextRow> rows() const;

 private:
  /// A pass over a text.
  struct Pass {
    std::size_t visible = 0;  ///< place in VisibleContextRequest::visible
    /// Distances of its predicted tokens, as rows have them; −1: none.
    std::vector<Index> distances;
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

}  // namespace masque::evaluate
