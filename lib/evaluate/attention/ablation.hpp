// How much of a model's loss depends on the attention of each layer: a model with a strong residual
// shortcut predicts equally well without it.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "evaluate/score/sequence.hpp"
#include "evaluate/score/text_scorer.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

/// A model with the attention of some layers removed or made uniform.
class AblatedModel final : public model::Model {
 public:
  /// `model` must outlive it. `attention` replaces Request::attention of every run: one a layer.
  AblatedModel(const model::Model& model, std::vector<model::AttentionOverride> attention);

  /// That of the model itself.
  const model::Design& design() const override { return model_.design(); }
  /// That of the model itself.
  kernel::Precision precision() const override { return model_.precision(); }
  const model::Model* encoder() const override { return model_.encoder(); }
  const std::vector<std::string>& unused() const override { return model_.unused(); }
  std::vector<double> run(const model::Batch& batch, const model::Request& request,
                          model::Observer* observer) const override;

 private:
  const model::Model& model_;
  std::vector<model::AttentionOverride> attention_;
};

/// The loss with one layer changed.
struct AblationRow {
  std::optional<Index> layer;  ///< from 0; none: all layers
  /// What the attention of this layer adds.
  model::AttentionOverride attention = model::AttentionOverride::kIntact;
  RatioMean loss;  ///< nats a token
  RatioMean gap;   ///< the loss minus that of the intact model, line by line
};

/// The 2 · `layers` + 3 rows of a model of so many layers, still empty: intact, then layer 0 zero,
/// mean, …, then all layers zero, mean.
std::vector<AblationRow> ablation_rows(Index layers);
/// What stands in Request::attention for `row` of a model of `layers`: one a layer.
std::vector<model::AttentionOverride> attention_of(const AblationRow& row, Index layers);

/// Scores text with the model as it is, and with each layer alone (and with all together) zeroed
/// and made uniform. For one thread.
class Ablation {
 public:
  /// `model` must outlive it. `options` are those of every score. Throws as TextScorer does.
  Ablation(const model::Model& model, const ScoreOptions& options);

  /// What is wrong with the length of a sentence; nothing if it can be added.
  std::optional<std::string> length_problem(const Sentence& sentence) const;
  /// Adds a sentence without a length_problem() to all scorers. `id` is as in TextScorer, and no
  /// two sentences that wait may have the same one. Cost: that of a score, for each row. Throws as
  /// TextScorer::add.
  void add(std::uint64_t id, const Sentence& sentence);
  /// Runs the waiting sentences: rows() then have every sentence.
  void flush();
  /// What the policy left out of the sentences that were added.
  const ShortenedTexts& shortened() const { return scorers_.front()->shortened(); }
  /// Those of ablation_rows, over the sentences that have run.
  const std::vector<AblationRow>& rows() const { return rows_; }

 private:
  void take(std::size_t row, const ScoredSentence& scored);

  std::vector<AblationRow> rows_;
  std::vector<std::unique_ptr<AblatedModel>> models_;
  std::vector<std::unique_ptr<TextScorer>> scorers_;
  std::unordered_map<std::uint64_t, double> intact_;  ///< scores that other rows still need
};

// The loss of masked language modelling with the attention of each layer removed or made uniform,
// by masking rate and by the fate of the token. A model with a residual shortcut still predicts a
// kept token, from the token itself.

/// The fate of a selected token: what replaces it.
enum class Fate {
  kMask,    ///< the mask token
  kRandom,  ///< a random token, uniform over all ids
  kKeep,    ///< the token itself
};

/// The name of `fate`: "mask", "random", "keep".
std::string_view fate_name(Fate fate);

/// What MaskedAblation measures.
struct MaskedAblationRequest {
  std::vector<double> rates;  ///< shares of the tokens that are selected, in (0, 1]
  /// Shares of the fates, as Fate lists them; they add up to 1.
  std::array<double, 3> split{0.8, 0.1, 0.1};
  std::optional<TokenId> mask;  ///< the mask token; required
  std::uint64_t seed = 0;       ///< seed of selection, fates and random tokens
  Index batch_tokens = 8192;    ///< most tokens of a batch; a longer text runs alone
};

/// A fate for each token of `sequence` by the shares `split`, as Fate lists them; a function of
/// `seed`, the sequence's number and the token's place, whatever the rate.
std::vector<Fate> fates_of(const Sequence& sequence, const std::array<double, 3>& split,
                           std::uint64_t seed);

/// One layer changed, for one fate at one rate. A token is a selected token of the text, its loss
/// that of its true id.
struct MaskedAblationRow {
  double rate = 0;           ///< share of the tokens that are selected
  std::optional<Fate> fate;  ///< none: all selected tokens
  AblationRow ablation;      ///< lines are those in which there is such a token
};

/// Corrupts each text once per rate and measures the loss of the selected tokens with every change
/// of ablation_rows. The tokens of a smaller rate are among those of a larger one, and have the
/// same fate. Results depend neither on batches nor on threads. Memory: a batch, and the rows. For
/// one thread.
class MaskedAblation {
 public:
  /// `model` must outlive it. `request` has rates, split and mask token. Throws UsageError if the
  /// model has no masked head of one stream, or there is no mask token.
  MaskedAblation(const model::Model& model, const MaskedAblationRequest& request);

  /// Adds the text of `sequence`; runs the batch when it is full. Cost: a pass a rate and row of
  /// ablation_rows. Throws as Model::run does.
  void add(const Sequence& sequence);
  /// Runs the texts that wait in the batch.
  void flush();
  /// Over the texts that have run: by rate, in it by fate, all last, in it as ablation_rows;
  /// without the fates of no share.
  const std::vector<MaskedAblationRow>& rows() const { return rows_; }

 private:
  /// A corrupted text in the batch.
  struct Copy {
    std::size_t rate = 0;     ///< rate of the request
    std::vector<Fate> fates;  ///< fates of its selected tokens
  };

  void take(std::size_t change, const std::vector<double>& log_probabilities,
            const std::vector<double>& intact);

  const model::Model& model_;
  MaskedAblationRequest request_;
  std::vector<AblationRow> changes_;
  std::vector<std::optional<Fate>> fates_;  ///< that have rows
  std::vector<MaskedAblationRow> rows_;
  model::Batch batch_;
  model::Request run_;
  std::vector<Copy> copies_;
};

}  // namespace masque::evaluate
