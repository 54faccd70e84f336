#include "train/loss/correction_loss.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "kernel/embedding.hpp"
#include "kernel/number/scalar.hpp"
#include "model/detector.hpp"
#include "train/data/record_example.hpp"

namespace masque::train {

namespace {

/// A token and its label differ.
bool is_wrong(const ExampleChunk& chunk, std::size_t k) {
  return chunk.ids[static_cast<std::size_t>(chunk.wanted[k])] != chunk.targets[k];
}

std::vector<Example> correction_examples(std::span<const StepItem> items) {
  std::vector<Example> examples;
  examples.reserve(items.size());
  for (const StepItem& item : items) {
    records::Record record = dropped_record(item.item, item.epoch, nullptr);
    examples.push_back(example_of(record));
  }
  return examples;
}

}  // namespace

template <class T>
CorrectionLoss<T>::CorrectionLoss(const model::Design& design, const ParameterMap& map,
                                  Parameters<T>& parameters, kernel::Precision precision,
                                  double weight)
    : weight_(weight),
      encoder_(design, map, parameters, precision),
      head_(design, map, parameters, precision) {
  MASQUE_CHECK(design.variants.detector.has_value() && weight >= 0 && weight <= 1);
}

template <class T>
void CorrectionLoss<T>::check(const Corpus& corpus) const {
  if (corpus.labels() != LabelKind::kTokens)
    throw InputError(corpus.source(), "sequences without labels, expected pairs of texts");
  if (corpus.has_masks())
    throw InputError(corpus.source(), "sequences with masks, expected pairs of texts");
}

template <class T>
void CorrectionLoss<T>::prepare() {
  encoder_.prepare();
  head_.prepare();
}

/// The detector's loss at the labelled tokens, and its gradient.
template <class T>
void CorrectionLoss<T>::detect(const ExampleChunk& chunk, double scale, Counts& counts) {
  const MatrixView<T> logits = tape_.soft_mask.logits.view();
  const MatrixView<T> d_logits = tape_.soft_mask.d_logits.view();
  LossReport& report = counts.detection;
  for (std::size_t k = 0; k < chunk.wanted.size(); ++k) {
    const Index row = chunk.wanted[k];
    const bool wrong = is_wrong(chunk, k);
    const LogitLoss<T> found = logit_loss(logits.at(row, 0), wrong);
    d_logits.at(row, 0) = found.slope * static_cast<T>((1 - weight_) * scale);
    report.loss += kernel::reference::real_part(found.loss);
    counts.wrong += wrong ? 1 : 0;
    report.correct += found.called == wrong ? 1 : 0;
    report.predicted_replaced += found.called ? 1 : 0;
    report.true_positives += found.called && wrong ? 1 : 0;
  }
}

/// The head at wrong tokens alone, of which it says how many are right.
template <class T>
void CorrectionLoss<T>::count_corrected(const ExampleChunk& chunk, Counts& counts) {
  std::vector<Index> rows;
  std::vector<TokenId> targets;
  for (std::size_t k = 0; k < chunk.wanted.size(); ++k) {
    if (!is_wrong(chunk, k)) continue;
    rows.push_back(static_cast<Index>(k));
    targets.push_back(chunk.targets[k]);
  }
  if (rows.empty()) return;
  const MatrixView<T> last =
      model::resized(wrong_last_, static_cast<Index>(rows.size()), last_.columns());
  kernel::embedding_forward<T, Index>(last_.view(), rows, last);
  const std::vector<double> weights(rows.size(), 1.0);
  counts.corrected += head_.run({last, targets, weights}, {}).correct;
}

template <class T>
void CorrectionLoss<T>::run_chunk(const ExampleChunk& chunk, double scale,
                                  const DropoutOptions& dropout, bool learns, Counts& counts) {
  const auto wanted = static_cast<Index>(chunk.wanted.size());
  if (wanted == 0) return;
  last_.resize(wanted, encoder_.design().hidden_size);
  encoder_.forward(chunk, dropout, tape_, last_.view());
  detect(chunk, scale, counts);
  count_corrected(chunk, counts);
  if (learns) d_last_.resize(wanted, encoder_.design().hidden_size);
  const std::vector<double> weights(chunk.wanted.size(), weight_ * scale);
  std::vector<double> losses(chunk.wanted.size());
  const LossSums<T> sums = head_.run({last_.view(), chunk.targets, weights},
                                     learns ? d_last_.view() : MatrixView<T>(), losses);
  for (const double loss : losses) counts.correction.loss += loss;
  counts.correction.correct += sums.correct;
  for (LossReport* report : {&counts.correction, &counts.detection}) {
    report->rows += wanted;
    report->weight += static_cast<double>(wanted);
  }
  if (learns) encoder_.backward(chunk, dropout, tape_, d_last_.view());
}

template <class T>
StepLosses CorrectionLoss<T>::run(std::span<const Example> examples, double scale,
                                  const DropoutOptions* dropout) {
  StepLosses losses;
  losses.tokens = tokens_of(examples);
  Counts counts;
  DropoutOptions own = dropout != nullptr ? *dropout : DropoutOptions();
  while (!examples.empty()) {
    const ExampleChunk chunk = take_chunk(examples, chunk_rows);
    run_chunk(chunk, scale, own, dropout != nullptr, counts);
    own.first_row += chunk.rows();
  }
  losses.parts.push_back({"detection", 1 - weight_, counts.detection});
  losses.parts.push_back({"correction", weight_, counts.correction});
  const LossReport& found = counts.detection;
  losses.shares.push_back({"error_rate", counts.wrong, found.rows});
  losses.shares.push_back({"detection_precision", found.true_positives, found.predicted_replaced});
  losses.shares.push_back({"detection_recall", found.true_positives, counts.wrong});
  losses.shares.push_back({"corrected_rate", counts.corrected, counts.wrong});
  return losses;
}

template <class T>
StepLosses CorrectionLoss<T>::add_gradients(std::span<const StepItem> items,
                                            const DropoutOptions& dropout) {
  const std::vector<Example> examples = correction_examples(items);
  const RankTotals whole = totals(ranks(), total_weight(examples), tokens_of(examples));
  DropoutOptions own = dropout;
  own.first_row += whole.rows_before;
  StepLosses losses = run(examples, whole.weight > 0 ? 1 / whole.weight : 1, &own);
  losses.sum(ranks());
  return losses;
}

template <class T>
StepLosses CorrectionLoss<T>::evaluate(std::span<const StepItem> items) {
  return run(correction_examples(items), 1, nullptr);
}

template class CorrectionLoss<float>;
template class CorrectionLoss<double>;

model::DetectorDesign detector_sizes(const model::Design& design, const DesignRecipe& recipe,
                                     double size, Index layers) {
  if (!(size > 0 && size <= 1)) {
    throw UsageError(fmt::format("{}: found {}, expected more than 0 and at most 1",
                                 field("detector_size"), size));
  }
  DesignRecipe own = recipe;
  own.intermediate_size = design.intermediate_size;
  own = scaled_recipe(own, size);
  const bool gated = design.layer_kind == model::LayerKind::kGatedAttention;
  return {.num_hidden_layers = layers,
          .hidden_size = own.hidden_size,
          .num_attention_heads = gated ? 1 : own.num_attention_heads,
          .intermediate_size = own.intermediate_size};
}

const ObjectiveTraits& correction_traits() {
  static const ObjectiveTraits kTraits{.reads_corrections = true};
  return kTraits;
}

void adapt_correction(const ObjectiveOptions& requested, const model::DetectorDesign& detector,
                      model::Design& design) {
  adapt_design({.objective = kCorrect,
                .vocab_size = requested.tokens.size,
                .mask_token = requested.tokens.mask},
               design);
  if (!design.variants.detector) design.variants.detector = detector;
  if (const auto problem = usage_error_message([&] { model::detector_rows(design); }))
    throw UsageError(fmt::format("{} {}: {}", field("objective"), kCorrect, *problem));
}

}  // namespace masque::train
