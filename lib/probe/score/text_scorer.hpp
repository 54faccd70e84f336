// Log-probabilities of the tokens of sentences, one sentence after the other.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "probe/score/batching.hpp"
#include "probe/score/length_policy.hpp"
#include "probe/score/likelihood_bound.hpp"
#include "probe/score/score_kind.hpp"
#include "probe/score/sentence.hpp"

namespace masque::probe {

struct ScoreOptions {
  ScoreKind kind = ScoreKind::kPll;
  /// What hides a token; not used by two-stream models, whose masks hide it, nor by kinds of one
  /// pass.
  std::optional<TokenId> mask;
  LengthPolicy policy;
  Index max_length = 0;  ///< tokens read at once, those of the template included; 0: the model's
  Index batch_tokens = 8192;
  /// Called with the length of each sequence of a kind of one pass, before it is run; may throw.
  std::function<void(Index)> check_length;
  /// The mask of a sequence, where its words decide it; may throw.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
  /// Of kMdlm: sets of hidden tokens that are drawn for each text, at least 2; above 0, the size of
  /// the blocks in which the model writes, whose blocks before each one are not hidden.
  Index draws = 32;
  Index block_size = 0;
  /// Of kCausal, one stream: how likely a token of each set is at every place. Doubles the head's
  /// work.
  std::vector<TokenSet> sets;
};

/// A sentence and its numbers.
struct ScoredSentence {
  std::uint64_t id = 0;
  Sentence sentence;
  /// Of each token of the text: its log-probability in nats, of kMdlm its share of the bound. Empty
  /// where nothing was scored: the first token of a causal model without a begin token, what kFirst
  /// and kLast leave out; all of kMaskless.
  std::vector<std::optional<double>> log_probabilities;
  Index tokens = 0;  ///< how many were scored; of kMaskless, read
  /// Sum of their log-probabilities, in the order of the text; of kMaskless, of the numbers of the
  /// windows.
  double score = 0;
  /// Of kMdlm: the variance of the score over other draws (variance_of_mean).
  std::optional<double> score_variance;
  /// With ScoreOptions::sets, for each token of the text and for what comes after the last one:
  /// the log-probability of each set there; NaN where nothing was scored.
  std::vector<double> sets;
};

/// Scores sentences in order; the draws of kMdlm are a function of a sentence's id. Masked copies
/// of several sentences share batches; a result depends neither on the size of the batches nor on
/// what else is scored. Memory: one batch, and the sentences in it.
class TextScorer {
 public:
  using Sink = std::function<void(ScoredSentence&&)>;

  /// `sink` gets the sentences in the order in which they were added. Throws InputError or
  /// UsageError for options that do not go with the model (a mask token is missing, no length).
  TextScorer(const model::Model& model, const ScoreOptions& options, Sink sink);

  /// What is wrong with the length of a sentence, or of kMdlm with a mask token in it; nothing if
  /// it can be added.
  std::optional<std::string> length_problem(const Sentence& sentence) const;
  /// Adds a sentence without such a problem; runs batches as they fill.
  void add(std::uint64_t id, Sentence sentence);
  /// The same, but of the text's tokens only those of [begin, end) are scored: all of kMaskless.
  void add(std::uint64_t id, Sentence sentence, Index begin, Index end);
  /// Runs what waits: every sentence has then been given to the sink.
  void flush();

 private:
  /// A draw of kMdlm in a window: places in the text, weights, log-probabilities.
  struct BoundDraw {
    HiddenTokens hidden;
    std::vector<double> values;
  };
  struct Pending {
    ScoredSentence scored;
    std::deque<BoundDraw> bound;  ///< those of one window after the other
    std::vector<double> values;   ///< one a token of the text, one for what comes after
    std::uint64_t last_job = 0;   ///< done when so many jobs have run
  };

  void add_window(Pending& pending, const Window& window);
  void add_masked(Pending& pending, const Window& window, const Sentence& part);
  void add_bound(Pending& pending, const Window& window, const Sentence& part);
  void sum_bound(Pending& pending) const;
  void add_pass(Pending& pending, const Window& window, const Sentence& part);
  void add_whole(Pending& pending, const Window& window, const Sentence& part);
  void add_job(Job job);
  void deliver();

  ScoreOptions options_;
  std::optional<Index> longest_;
  bool two_streams_;
  Sink sink_;
  JobRunner runner_;
  std::uint64_t jobs_ = 0;
  std::deque<Pending> pending_;
};

/// M(t) of a masked kind, as places among the ids of a sentence: ascending, t among them.
std::vector<Index> hidden_with(ScoreKind kind, const Sentence& sentence, Index t);

}  // namespace masque::probe
