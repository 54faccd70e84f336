// How much of a model's loss depends on the attention of each layer: a model with a strong residual
// shortcut predicts equally well without it.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "probe/score/text_scorer.hpp"
#include "probe/statistics/summary.hpp"

namespace masque::probe {

/// A model with the attention of some layers removed or made uniform.
class AblatedModel final : public model::Model {
 public:
  /// `model` must outlive it. `attention` replaces Request::attention of every run: one a layer.
  AblatedModel(const model::Model& model, std::vector<model::AttentionOverride> attention);

  /// That of the model itself.
  const model::Design& design() const override { return model_.design(); }
  /// That of the model itself.
  kernel::Precision precision() const override { return model_.precision(); }
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

}  // namespace masque::probe
