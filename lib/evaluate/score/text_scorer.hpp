// Log-probabilities of the tokens of sentences, one sentence after the other.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "evaluate/score/batching.hpp"
#include "evaluate/score/length_policy.hpp"
#include "evaluate/score/likelihood_bound.hpp"
#include "evaluate/score/score_kind.hpp"
#include "evaluate/score/sentence.hpp"

namespace masque::evaluate {

/// How TextScorer scores texts.
struct ScoreOptions {
  ScoreKind kind = ScoreKind::kPll;  ///< what a score is
  /// The token that replaces a hidden one. Not used by models of two streams, which hide tokens by
  /// masks, nor by kinds of one pass.
  std::optional<TokenId> mask;
  LengthPolicy policy;   ///< for texts of more than the most tokens
  Index max_length = 0;  ///< tokens read at once, those of the template included; 0: the model's
  Index batch_tokens = 8192;  ///< most tokens of a batch; a longer sequence runs alone
  /// Called with the length of each sequence of a kind of one pass, except kMaskless, before it is
  /// run; may throw.
  std::function<void(Index)> check_length;
  /// The mask of a sequence, where its words decide it; may throw.
  std::function<mask::Mask(std::span<const TokenId> ids)> mask_of;
  /// For kMdlm: how many sets of hidden tokens are drawn for each window of a text, at least 2.
  Index draws = 32;
  /// For kMdlm: the size, in tokens, of the blocks in which the model writes; the blocks before
  /// each one stay visible. 0: one block.
  Index block_size = 0;
  /// For kCausal with one stream: also gives the log-probability of each set at every position.
  /// Doubles the cost of the head.
  std::vector<TokenSet> sets;
};

/// A sentence and its scores.
struct ScoredSentence {
  std::uint64_t id = 0;  ///< as TextScorer::add got it
  Sentence sentence;     ///< as it was added
  /// One per token of the text: its log-probability in nats; for kMdlm its share of the bound. No
  /// value where nothing was scored: the first token of a causal model without a begin token,
  /// tokens that kFirst and kLast cut, and all tokens with kMaskless.
  std::vector<std::optional<double>> log_probabilities;
  Index tokens = 0;  ///< number of scored tokens; for kMaskless, of tokens read
  /// Sum of the log-probabilities in the order of the text; for kMaskless, of the windows'
  /// numbers.
  double score = 0;
  /// For kMdlm: the variance of the score over draws (variance_of_mean).
  std::optional<double> score_variance;
  /// With ScoreOptions::sets: the log-probability of each set, at each token of the text and after
  /// the last one; NaN where nothing was scored.
  std::vector<double> sets;
};

/// Scores sentences in order. Masked copies of several sentences share batches; a result depends
/// neither on the size of the batches nor on the other sentences. The draws of kMdlm are a function
/// of a sentence's id. Memory: one batch, and the sentences in it.
class TextScorer {
 public:
  /// Takes a scored sentence.
  using Sink = std::function<void(ScoredSentence&&)>;

  /// Scores with `model`, which must outlive this, as `options` say. `sink` receives the sentences
  /// in the order in which they were added, during add() and flush(). Throws InputError or
  /// UsageError for options that the model does not support (a missing mask token, a length).
  TextScorer(const model::Model& model, const ScoreOptions& options, Sink sink);

  /// Why `sentence` cannot be added: its length, or for kMdlm a mask token in it. No value if it
  /// can be added.
  std::optional<std::string> length_problem(const Sentence& sentence) const;
  /// Adds `sentence`, which has no length_problem(); runs batches as they fill. `id` is handed to
  /// the sink, and names the draws of kMdlm. Throws as Model::run does, and what the functions of
  /// the options throw.
  void add(std::uint64_t id, Sentence sentence);
  /// The same, but scores only tokens [`begin`, `end`) of the text of `sentence`. With kMaskless:
  /// all tokens. `id` is as above.
  void add(std::uint64_t id, Sentence sentence, Index begin, Index end);
  /// Runs the waiting sentences. Every sentence has then been given to the sink.
  void flush();

  /// What the policy left out of the sentences that were added.
  const ShortenedTexts& shortened() const { return shortened_; }

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
  ShortenedTexts shortened_;
  std::optional<Index> longest_;
  bool two_streams_;
  Sink sink_;
  JobRunner runner_;
  std::uint64_t jobs_ = 0;
  std::deque<Pending> pending_;
};

/// M(t) of a masked `kind`, as places among the ids of `sentence`: ascending, `t` among them.
std::vector<Index> hidden_with(ScoreKind kind, const Sentence& sentence, Index t);

}  // namespace masque::evaluate
