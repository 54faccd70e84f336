#include "train/loss/mae_loss.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "model/checkpoint/save.hpp"
#include "model/layer_list.hpp"
#include "train/data/record_example.hpp"
#include "train/loss/step_loss.hpp"

namespace masque::train {

template <class T>
MaeLoss<T>::MaeLoss(const ObjectiveOptions& requested, const MaeModel& model,
                    Parameters<T>& parameters, kernel::Precision precision)
    : objective_(find_objective("mae-mask").make(requested)),
      encoder_(model.encoder, model.encoder_map, parameters, precision),
      decoder_(model.decoder, model.decoder_map, parameters, precision),
      head_(model.decoder, model.decoder_map, parameters, precision) {}

template <class T>
void MaeLoss<T>::prepare() {
  encoder_.prepare();
  decoder_.prepare();
  head_.prepare();
}

template <class T>
void MaeLoss<T>::run_chunk(Chunks& chunks, double scale, const DropoutOptions& dropout, bool learns,
                           LossReport& report) {
  DropoutOptions other = dropout;
  other.seed = ~dropout.seed;  // the decoder's has nothing to do with the encoder's
  Matrix<T>& given = decoder_tape_.given;
  given.resize(chunks.encoder.rows(), encoder_.design().hidden_size);
  encoder_.forward(chunks.encoder, dropout, encoder_tape_, given.view());
  const auto wanted = static_cast<Index>(chunks.decoder.wanted.size());
  last_.resize(wanted, decoder_.design().hidden_size);
  decoder_.forward(chunks.decoder, other, decoder_tape_, last_.view());
  if (learns) d_last_.resize(wanted, decoder_.design().hidden_size);
  const std::vector<double> weights(chunks.decoder.wanted.size(), scale);
  const LossSums<T> sums = head_.run({last_.view(), chunks.decoder.targets, weights},
                                     learns ? d_last_.view() : MatrixView<T>());
  report.loss += static_cast<double>(sums.loss) / scale;
  report.weight += static_cast<double>(wanted);
  report.rows += wanted;
  report.correct += sums.correct;
  if (!learns) return;
  decoder_tape_.wants_given = encoder_.learns();
  decoder_.backward(chunks.decoder, other, decoder_tape_, d_last_.view());
  if (!encoder_.learns()) return;
  encoder_.backward(chunks.encoder, dropout, encoder_tape_, decoder_tape_.d_given.view());
}

template <class T>
StepLosses MaeLoss<T>::run(std::span<const StepItem> items, const DropoutOptions* dropout) {
  StepLosses losses;
  std::vector<MaeExamples> examples;
  examples.reserve(items.size());
  Index total = 0;
  for (const StepItem& item : items) {
    const Example hidden = objective_->example(item.item, item.epoch);
    losses.tokens += hidden.size();
    if (hidden.rows.empty()) continue;
    total += std::ssize(hidden.rows);
    examples.push_back(mae_examples(hidden));
  }
  LossReport report;
  DropoutOptions own = dropout != nullptr ? *dropout : DropoutOptions();
  auto weight = static_cast<double>(total);
  if (dropout != nullptr) {
    Index rows = 0;
    for (const MaeExamples& one : examples) rows += one.decoder.size();
    const RankTotals whole = totals(ranks(), weight, rows);
    weight = whole.weight;
    own.first_row += whole.rows_before;
  }
  for (std::size_t next = 0; next < examples.size();) {
    Chunks chunks;
    const std::size_t first = next;
    while (next < examples.size() &&
           (next == first || chunks.decoder.rows() + examples[next].decoder.size() <= chunk_rows)) {
      const MaeExamples& one = examples[next++];
      for (const Index row : one.given) chunks.decoder.given.push_back(chunks.decoder.rows() + row);
      chunks.encoder.add(one.encoder);
      chunks.decoder.add(one.decoder);
    }
    run_chunk(chunks, 1 / weight, own, dropout != nullptr, report);
    own.first_row += chunks.decoder.rows();
  }
  losses.parts.push_back({"", 1, report});
  return losses;
}

template <class T>
StepLosses MaeLoss<T>::add_gradients(std::span<const StepItem> items,
                                     const DropoutOptions& dropout) {
  StepLosses losses = run(items, &dropout);
  losses.sum(ranks());
  return losses;
}

template <class T>
StepLosses MaeLoss<T>::evaluate(std::span<const StepItem> items) {
  return run(items, nullptr);
}

template class MaeLoss<float>;
template class MaeLoss<double>;

const ObjectiveTraits& mae_traits() {
  static const ObjectiveTraits kTraits{
      .options = {"mae_ratio", "drop"},
      .two_token_types = [](const ObjectiveOptions&) { return true; },
      .reads_dropped = true};
  return kTraits;
}

void adapt_mae(const ObjectiveOptions& requested, model::Design& encoder) {
  if (encoder.variants.mixer != nullptr) {
    throw UsageError(
        fmt::format("{}: the mixer {} mixes tokens by their order in the encoder's input, "
                    "where hidden tokens are missing",
                    kMae, model::mixer_name(encoder)));
  }
  if (encoder.convolution_size > 0) {
    throw UsageError(
        fmt::format("{}: a convolution reads neighbours in the encoder's input, where hidden "
                    "tokens are missing",
                    kMae));
  }
  encoder.head = {};
  adapt_design({.objective = kMae,
                .head = model::HeadKind::kNone,
                .segments = requested.pairs,
                .vocab_size = requested.tokens.size,
                .mask_token = requested.tokens.mask},
               encoder);
}

DesignRecipe decoder_recipe(const DesignRecipe& recipe, double size, Index layers) {
  if (!(size > 0 && size <= 1)) {
    throw UsageError(fmt::format("{}: found {}, expected more than 0 and at most 1",
                                 field("decoder_size"), size));
  }
  for (const auto& [name, text] :
       {std::pair{"position", &recipe.position}, std::pair{"normalizer", &recipe.normalizer}}) {
    if (!model::LayerList(*text).is_list()) continue;
    throw UsageError(
        fmt::format("{}: '{}' is a list by layer, but the decoder of {} {} has other layers; "
                    "use one for all layers",
                    field(name), escape(*text), field("objective"), kMae));
  }
  DesignRecipe own = scaled_recipe(recipe, size);
  own.input_residual = true;  // it reads the encoder's states
  own.late_positions = 0;
  own.num_hidden_layers = layers;
  return own;
}

model::Design decoder_design(const DesignRecipe& own, const ObjectiveOptions& requested,
                             const model::Design& encoder) {
  model::Design design = design_of(own);
  design.embedding_size = encoder.hidden_size;
  design.type_vocab_size = encoder.type_vocab_size;
  design.pad_token_id = encoder.pad_token_id;
  design.mask_token_id = encoder.mask_token_id;
  adapt_design({.objective = "decoder",
                .segments = requested.pairs,
                .vocab_size = requested.tokens.size,
                .mask_token = requested.tokens.mask},
               design);
  return design;
}

template <class T>
void add_mae(MaeModel& model, Parameters<T>& parameters) {
  model.encoder_map =
      add_model(model.encoder_plan ? *model.encoder_plan : model::saved_design(model.encoder).plan,
                nullptr, "", ParameterMap(), parameters);
  const ParameterMap tables = shared_tables(model.encoder, model.encoder_map, model.decoder);
  const model::ModelPlan plan = model::saved_design(model.decoder).plan;
  model.decoder_map =
      add_model(plan, model::head_like(plan, model.decoder.head), "decoder.", tables, parameters);
}

template void add_mae(MaeModel&, Parameters<float>&);
template void add_mae(MaeModel&, Parameters<double>&);

MaeExamples mae_examples(const Example& hidden) {
  MaeExamples out;
  out.decoder = hidden;
  out.decoder.mask.reset();
  Example& kept = out.encoder;
  kept.sparse = true;
  for (Index i = 0; i < hidden.size(); ++i) {
    if (std::ranges::binary_search(hidden.rows, i)) continue;
    const auto at = static_cast<std::size_t>(i);
    out.given.push_back(i);
    kept.rows.push_back(kept.size());
    kept.ids.push_back(hidden.ids[at]);
    kept.positions.push_back(hidden.positions.empty() ? i : hidden.positions[at]);
    if (!hidden.segments.empty()) kept.segments.push_back(hidden.segments[at]);
  }
  kept.targets = kept.ids;
  return out;
}

}  // namespace masque::train
