#include "evaluate/attention/ablation.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "evaluate/score/corrupt.hpp"

namespace masque::evaluate {

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

namespace {

/// Words of a token's block in the stream of fates.
constexpr std::size_t kFateWord = 0;
constexpr std::size_t kTokenWord = 1;

RandomStream fate_stream(const Sequence& sequence, std::uint64_t seed) {
  return {seed, "ablation fates", sequence.number};
}

}  // namespace

std::string_view fate_name(Fate fate) {
  switch (fate) {
    case Fate::kMask: return "mask";
    case Fate::kRandom: return "random";
    case Fate::kKeep: break;
  }
  return "keep";
}

std::vector<Fate> fates_of(const Sequence& sequence, const std::array<double, 3>& split,
                           std::uint64_t seed) {
  const RandomStream stream = fate_stream(sequence, seed);
  std::vector<Fate> fates(sequence.ids.size());
  for (std::size_t i = 0; i < fates.size(); ++i) {
    const double number = static_cast<double>(stream.block(i)[kFateWord]) * 0x1p-32;
    fates[i] = number < split[0]              ? Fate::kMask
               : number < split[0] + split[1] ? Fate::kRandom
                                              : Fate::kKeep;
  }
  return fates;
}

MaskedAblation::MaskedAblation(const model::Model& model, const MaskedAblationRequest& request)
    : model_(model), request_(request), changes_(ablation_rows(model.design().num_hidden_layers)) {
  const model::Design& design = model.design();
  if (design.head.kind != model::HeadKind::kMasked || design.streams == model::Streams::kTwo)
    throw UsageError(
        fmt::format("{} needs a masked head and one stream, found another model", field("rates")));
  if (!request.mask) throw UsageError("the tokenizer has no mask token, expected one");
  const auto& split = request.split;
  // Else a number in [0, 1) could give a fate of no share.
  MASQUE_CHECK(std::abs(split[0] + split[1] + split[2] - 1) <= 1e-10);
  for (const Fate fate : {Fate::kMask, Fate::kRandom, Fate::kKeep}) {
    if (split[static_cast<std::size_t>(fate)] > 0) fates_.emplace_back(fate);
  }
  fates_.emplace_back(std::nullopt);
  for (const double rate : request.rates) {
    for (const auto& fate : fates_) {
      for (const AblationRow& change : changes_) rows_.push_back({rate, fate, change});
    }
  }
}

void MaskedAblation::add(const Sequence& sequence) {
  const auto numbers = selection_numbers(sequence, request_.seed, "ablation");
  const auto fates = fates_of(sequence, request_.split, request_.seed);
  const RandomStream stream = fate_stream(sequence, request_.seed);
  const auto vocab_size = static_cast<std::uint64_t>(model_.design().vocab_size);
  for (std::size_t r = 0; r < request_.rates.size(); ++r) {
    Copy copy;
    copy.rate = r;
    std::vector<TokenId> ids = sequence.ids;
    std::vector<Index> rows;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (numbers[i] >= request_.rates[r]) continue;
      if (fates[i] == Fate::kMask) ids[i] = *request_.mask;
      if (fates[i] == Fate::kRandom)
        ids[i] = static_cast<TokenId>(stream.block(i)[kTokenWord] % vocab_size);
      copy.fates.push_back(fates[i]);
      rows.push_back(static_cast<Index>(i));
    }
    if (rows.empty()) continue;
    if (std::ssize(batch_.ids) + sequence.size() > request_.batch_tokens) flush();
    const Index first = batch_.add(ids, {sequence.positions, sequence.segments, sequence.mask, {}});
    for (const Index row : rows) {
      run_.rows.push_back(first + row);
      run_.targets.push_back(sequence.ids[static_cast<std::size_t>(row)]);
    }
    copies_.push_back(std::move(copy));
  }
}

void MaskedAblation::flush() {
  if (copies_.empty()) return;
  std::vector<double> intact;
  for (std::size_t c = 0; c < changes_.size(); ++c) {
    run_.attention = attention_of(changes_[c], model_.design().num_hidden_layers);
    const std::vector<double> found = model_.run(batch_, run_);
    if (c == 0) intact = found;
    take(c, found, intact);
  }
  batch_ = {};
  run_ = {};
  copies_.clear();
}

void MaskedAblation::take(std::size_t change, const std::vector<double>& log_probabilities,
                          const std::vector<double>& intact) {
  std::size_t first = 0;
  for (const Copy& copy : copies_) {
    for (std::size_t f = 0; f < fates_.size(); ++f) {
      double loss = 0, gap = 0, count = 0;
      for (std::size_t i = 0; i < copy.fates.size(); ++i) {
        if (fates_[f] && fates_[f] != copy.fates[i]) continue;
        loss -= log_probabilities[first + i];
        gap += intact[first + i] - log_probabilities[first + i];
        ++count;
      }
      const std::size_t row = (copy.rate * fates_.size() + f) * changes_.size() + change;
      rows_[row].ablation.loss.add(loss, count);
      rows_[row].ablation.gap.add(gap, count);
    }
    first += copy.fates.size();
  }
}

}  // namespace masque::evaluate
