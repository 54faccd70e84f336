#include "probe/attention/ablation.hpp"

#include <utility>

namespace masque::probe {

using model::AttentionOverride;

AblatedModel::AblatedModel(const model::Model& model, std::vector<AttentionOverride> attention)
    : model_(model), attention_(std::move(attention)) {}

std::vector<double> AblatedModel::run(const model::Batch& batch, const model::Request& request,
                                      model::Observer* observer) const {
  model::Request changed = request;
  changed.attention = attention_;
  return model_.run(batch, changed, observer);
}

std::vector<AblationRow> ablation_rows(Index layers) {
  std::vector<AblationRow> rows(1);
  for (Index layer = 0; layer <= layers; ++layer) {
    for (const auto attention : {AttentionOverride::kZero, AttentionOverride::kMean}) {
      AblationRow& row = rows.emplace_back();
      if (layer < layers) row.layer = layer;
      row.attention = attention;
    }
  }
  return rows;
}

std::vector<AttentionOverride> attention_of(const AblationRow& row, Index layers) {
  std::vector<AttentionOverride> attention(static_cast<std::size_t>(layers),
                                           row.layer ? AttentionOverride::kIntact : row.attention);
  if (row.layer) attention[static_cast<std::size_t>(*row.layer)] = row.attention;
  return attention;
}

Ablation::Ablation(const model::Model& model, const ScoreOptions& options)
    : rows_(ablation_rows(model.design().num_hidden_layers)) {
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    models_.push_back(std::make_unique<AblatedModel>(
        model, attention_of(rows_[r], model.design().num_hidden_layers)));
    scorers_.push_back(std::make_unique<TextScorer>(
        *models_.back(), options, [this, r](ScoredSentence&& scored) { take(r, scored); }));
  }
}

std::optional<std::string> Ablation::length_problem(const Sentence& sentence) const {
  return scorers_.front()->length_problem(sentence);
}

void Ablation::add(std::uint64_t id, const Sentence& sentence) {
  for (const auto& scorer : scorers_) scorer->add(id, sentence);
}

void Ablation::flush() {
  for (const auto& scorer : scorers_) scorer->flush();
}

// All scorers get the same sentences and so fill their batches alike: the intact score of a
// sentence is there before the others, and no longer needed after the last.
void Ablation::take(std::size_t row, const ScoredSentence& scored) {
  const auto tokens = static_cast<double>(scored.tokens);
  if (row == 0) intact_[scored.id] = scored.score;
  const double intact = intact_.at(scored.id);
  rows_[row].loss.add(-scored.score, tokens);
  rows_[row].gap.add(intact - scored.score, tokens);
  if (row + 1 == rows_.size()) intact_.erase(scored.id);
}

}  // namespace masque::probe
