#include "train/loss/electra_loss.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "kernel/number/elementary.hpp"
#include "model/checkpoint/save.hpp"
#include "model/masks.hpp"
#include "train/data/objective.hpp"
#include "train/data/record_example.hpp"
#include "train/loss/step_loss.hpp"

namespace masque::train {

using model::Role;

namespace {

constexpr std::array<ElectraVariant, 5> kVariants{{
    {.name = "all-tokens-mlm",
     .summary = "all tokens of a text with a generator's samples in it, with a gate that copies",
     .all = true,
     .vocabulary = true,
     .copies = true},
    {.name = "electra",
     .summary = "which tokens a generator has replaced",
     .all = true,
     .weight = 50},
    {.name = "electra-15", .summary = "the same, at the selected positions alone", .weight = 50},
    {.name = "electric",
     .summary = "energies of tokens, by noise-contrastive estimation; a TwoTower draws the noise",
     .all = true,
     .energy = true,
     .weight = 50},
    {.name = "replace-mlm",
     .summary = "selected tokens, with a generator's samples in their places",
     .vocabulary = true},
}};

DesignNeeds needs_of(std::string_view name, const ObjectiveOptions& requested,
                     model::HeadKind head) {
  return {.objective = name,
          .head = head,
          .segments = requested.pairs,
          .vocab_size = requested.tokens.size,
          .mask_token = requested.tokens.mask};
}

/// Logits of a discriminator from the losses of its rows: −log σ(z) where a token was replaced,
/// else −log σ(−z).
RankedScores detections_of(std::span<const Example> examples, std::span<const double> losses) {
  RankedScores scores;
  std::size_t row = 0;
  for (const Example& example : examples) {
    for (const TokenId replaced : example.targets) {
      const double z = std::log(std::expm1(losses[row++]));
      (replaced != 0 ? scores.positive : scores.negative).push_back(replaced != 0 ? -z : z);
    }
  }
  return scores;
}

bool of_head(Role role) {
  return role == Role::kHeadTransform || role == Role::kHeadNorm || role == Role::kDecoder;
}

/// The dropout of the generator has nothing to do with that of the other.
DropoutOptions other_noise(const DropoutOptions& dropout) {
  DropoutOptions other = dropout;
  other.seed = ~dropout.seed;
  return other;
}

/// Electric: the generator reads the tokens as they are, and ⌈rate · n⌉ are replaced.
ElectraSelectionOptions selection_of(const ElectraLossOptions& options, const ElectraModel& model) {
  ElectraSelectionOptions selection = options.selection;
  if (!model.variant->energy) return selection;
  selection.mask = 0;
  selection.selection.rounds_up = true;
  return selection;
}

}  // namespace

template <class T>
ElectraLoss<T>::ElectraLoss(const ElectraLossOptions& options, const ElectraModel& model,
                            Parameters<T>& parameters)
    : options_(options),
      model_(model),
      parameters_(parameters),
      selection_(selection_of(options, model)),
      generator_(model.generator, model.generator_map, parameters, options.precision),
      second_(model.second, model.second_map, parameters, options.precision, model.gate),
      of_generator_(static_cast<std::size_t>(parameters.count()), false) {
  check_energy();
  check_adversarial();
  generator_.chunk_rows = second_.chunk_rows = options.chunk_rows;
  if (options.diversity) second_.reward_diversity(*options.diversity);
  generator_.set_recompute(options.recompute);
  second_.set_recompute(options.recompute);
  model.generator_map.for_each([&](Role, bool, Index, Index, Index parameter) {
    of_generator_[static_cast<std::size_t>(parameter)] = true;
  });
  model.second_map.for_each([&](Role, bool, Index, Index, Index parameter) {
    const auto at = static_cast<std::size_t>(parameter);
    MASQUE_CHECK(!of_generator_[at] || options.switch_step == 0);
    of_generator_[at] = false;
  });
}

template <class T>
void ElectraLoss<T>::check_energy() const {
  if (!model_.variant->energy) return;
  if (options_.switch_step > 0)
    throw UsageError(
        fmt::format("{} cannot be combined with {} electric, which trains both networks together",
                    field("switch"), field("objective")));
  const records::SelectionOptions& selection = options_.selection.selection;
  if (selection.rate_high >= 0 || !(selection.rate > 0 && selection.rate < 1))
    throw UsageError(
        fmt::format("{} with {} electric: expected one share, more than 0 and less than 1",
                    field("rate"), field("objective")));
}

template <class T>
void ElectraLoss<T>::check_adversarial() const {
  if (!model_.adversarial) return;
  if (model_.variant->vocabulary || model_.variant->energy)
    throw UsageError(fmt::format("{} needs a discriminator: use {} electra", field("adversarial"),
                                 field("objective")));
  if (options_.switch_step > 0)
    throw UsageError(fmt::format("{} and {} cannot be combined; use one of them",
                                 field("adversarial"), field("switch")));
}

template <class T>
void ElectraLoss<T>::check(const Corpus& corpus) const {
  if (corpus.pairs() && !options_.pairs)
    throw InputError(corpus.source(), "sequences with two segments, expected one segment");
  if (!corpus.has_masks() && !corpus.has_positions()) return;
  throw UsageError(
      fmt::format("{} {}: {} has sequences with {}; use an objective of one "
                  "network",
                  field("objective"), model_.variant->name, corpus.source(),
                  corpus.has_masks() ? "masks" : "positions"));
}

template <class T>
void ElectraLoss<T>::start_second() {
  model_.generator_map.for_each([&](Role role, bool bias, Index layer, Index part, Index from) {
    if (of_head(role)) return;
    const Index to =
        bias ? model_.second_map.bias(role, layer) : model_.second_map.weight(role, layer, part);
    if (to == ParameterMap::kNone || parameters_[to].rows != parameters_[from].rows ||
        parameters_[to].columns != parameters_[from].columns) {
      return;
    }
    const MatrixView<T> value = parameters_.value(from);
    std::copy_n(value.data, parameters_[from].size(), parameters_.value(to).data);
  });
}

template <class T>
void ElectraLoss<T>::begin(std::int64_t step) {
  step_ = step;
  if (options_.hands_over && options_.switch_step > 0 && step == options_.switch_step + 1)
    start_second();
}

template <class T>
void ElectraLoss<T>::prepare() {
  generator_.prepare();
  second_.prepare();
}

template <class T>
bool ElectraLoss<T>::updates(Index parameter, std::int64_t step) const {
  if (options_.switch_step == 0) return true;
  return of_generator_[static_cast<std::size_t>(parameter)] == first_stage(step);
}

template <class T>
LossReport ElectraLoss<T>::run_generator(std::span<const Example> examples,
                                         const DropoutOptions* dropout,
                                         const RunOutputs<T>& outputs) {
  if (model_.adversarial) {
    return dropout == nullptr
               ? generator_.evaluate(examples, outputs)
               : generator_.evaluate_with_dropout(examples, other_noise(*dropout), outputs);
  }
  const bool learns = options_.switch_step == 0 || first_stage(step_);
  if (dropout == nullptr || !learns) return generator_.evaluate(examples, outputs);
  const RankTotals whole = totals(ranks(), total_weight(examples), 0);
  if (whole.weight == 0) return generator_.evaluate(examples, outputs);
  return generator_.train(examples, 1 / whole.weight, other_noise(*dropout), outputs);
}

template <class T>
LossReport ElectraLoss<T>::run_second(std::span<const Example> examples,
                                      const DropoutOptions* dropout,
                                      std::vector<double>* row_losses) {
  RunOutputs<T> outputs{.losses = row_losses};
  if (dropout == nullptr || options_.weight == 0) return second_.evaluate(examples, outputs);
  const RankTotals whole = totals(ranks(), total_weight(examples), 0);
  if (whole.weight == 0) return second_.evaluate(examples, outputs);
  share_reward(ranks(), examples, second_);
  // A generator that is rewarded learns afterwards.
  if (!model_.adversarial) outputs.passed = passed(second_);
  return second_.train(examples, options_.weight / whole.weight, *dropout, outputs);
}

template <class T>
typename ElectraLoss<T>::Played ElectraLoss<T>::reinforce(std::span<const ElectraItem> selected,
                                                          std::span<const TokenId> samples,
                                                          std::span<const double> row_losses,
                                                          const DropoutOptions* dropout) {
  Played played;
  const MatrixView<T> w = parameters_.value(model_.baseline);
  const MatrixView<T> d_w = parameters_.gradient(model_.baseline);
  std::vector<Example> examples;
  examples.reserve(selected.size());
  auto whole = static_cast<double>(samples.size());
  if (dropout != nullptr) whole = totals(ranks(), whole, 0).weight;
  const double scale = 1 / std::max(1.0, whole);
  Index row = 0;
  std::size_t first = 0;  // of row_losses
  for (const ElectraItem& item : selected) {
    std::vector<double> advantages;
    for (std::size_t k = 0; k < item.rows.size(); ++k, ++row) {
      const std::size_t at = model_.variant->all ? static_cast<std::size_t>(item.rows[k]) : k;
      const double reward = row_losses[first + at];
      double z = 0;
      for (Index c = 0; c < w.columns; ++c)
        z += static_cast<double>(generator_last_.view().at(row, c)) *
             static_cast<double>(w.at(0, c));
      const double right = std::exp(-reward);  // that the discriminator is
      played.reward.loss += reward;
      played.baseline.loss += right * kernel::softplus(-z) + (1 - right) * kernel::softplus(z);
      advantages.push_back(reward - kernel::softplus(-z));
      const double slope = scale * (1 / (1 + std::exp(-z)) - right);
      for (Index c = 0; dropout != nullptr && c < d_w.columns; ++c)
        d_w.at(0, c) += static_cast<T>(slope) * generator_last_.view().at(row, c);
    }
    const auto own = samples.first(item.rows.size());
    samples = samples.subspan(item.rows.size());
    examples.push_back(drawn_example(item, own, advantages));
    first += model_.variant->all ? item.ids.size() : item.rows.size();
  }
  for (LossReport* report : {&played.reward, &played.baseline}) {
    report->rows = row;
    report->weight = static_cast<double>(row);
  }
  if (dropout != nullptr && row > 0) generator_.train(examples, scale, other_noise(*dropout));
  return played;
}

template <class T>
std::vector<Example> ElectraLoss<T>::second_examples(std::span<const ElectraItem> selected,
                                                     std::span<const TokenId> samples,
                                                     Share& fake) const {
  const ElectraVariant& variant = *model_.variant;
  std::vector<Example> examples;
  examples.reserve(selected.size());
  fake.of = std::ssize(samples);
  for (const ElectraItem& item : selected) {
    const auto own = samples.first(item.rows.size());
    samples = samples.subspan(item.rows.size());
    for (std::size_t k = 0; k < own.size(); ++k)
      fake.count += own[k] == item.ids[static_cast<std::size_t>(item.rows[k])] ? 0 : 1;
    examples.push_back(variant.vocabulary ? replaced_example(item, own, variant.all)
                                          : discriminator_example(item, own, variant.all));
  }
  return examples;
}

template <class T>
StepLosses ElectraLoss<T>::run_energy(std::span<const StepItem> items,
                                      const DropoutOptions* dropout) {
  StepLosses losses;
  std::vector<ElectraItem> selected;
  std::vector<Example> examples;
  Sampling sampling;
  sampling.keeps_losses = true;
  for (const StepItem& item : items) {
    const ElectraItem& one = selected.emplace_back(selection_.select(item.item, item.epoch));
    losses.tokens += std::ssize(one.ids);
    const auto numbers = draw_numbers(item.item, item.epoch, one.ordinary, options_.selection.seed);
    sampling.uniforms.insert(sampling.uniforms.end(), numbers.begin(), numbers.end());
    examples.push_back(cloze_example(one));
  }
  std::vector<double> true_losses;
  const LossReport generator =
      run_generator(examples, dropout, {.sampling = &sampling, .losses = &true_losses});
  losses.parts.push_back({"generator", 1, generator});
  Share fake{"fake_rate"};
  std::size_t first = 0;
  for (std::size_t s = 0; s < selected.size(); ++s) {
    const ElectraItem& item = selected[s];
    const std::size_t count = item.ordinary.size();
    const NoiseRows noise{std::span(sampling.tokens).subspan(first, count),
                          std::span(sampling.losses).subspan(first, count),
                          std::span(true_losses).subspan(first, count)};
    first += count;
    examples[s] = energy_example(item, noise, options_.selection.selection.rate);
    const std::vector<TokenId> draws = selected_draws(item, noise);
    fake.of += std::ssize(draws);
    for (std::size_t k = 0; k < draws.size(); ++k)
      fake.count += draws[k] == item.ids[static_cast<std::size_t>(item.rows[k])] ? 0 : 1;
  }
  losses.shares.push_back(fake);
  losses.parts.push_back({"energy", options_.weight, run_second(examples, dropout, nullptr)});
  return losses;
}

template <class T>
StepLosses ElectraLoss<T>::run(std::span<const StepItem> items, const DropoutOptions* dropout) {
  if (model_.variant->energy) return run_energy(items, dropout);
  const bool alone = first_stage(step_);
  StepLosses losses;
  std::vector<ElectraItem> selected;
  Sampling sampling;
  selected.reserve(items.size());
  for (const StepItem& item : items) {
    selected.push_back(selection_.select(item.item, item.epoch));
    losses.tokens += std::ssize(selected.back().ids);
    if (alone) continue;
    const auto numbers =
        draw_numbers(item.item, item.epoch, selected.back().rows, options_.selection.seed);
    sampling.uniforms.insert(sampling.uniforms.end(), numbers.begin(), numbers.end());
  }
  const bool by_likelihood = !model_.adversarial && (options_.switch_step == 0 || alone);
  std::vector<Example> masked;
  masked.reserve(selected.size());
  for (const ElectraItem& item : selected) masked.push_back(generator_example(item));
  RunOutputs<T> outputs{.sampling = alone ? nullptr : &sampling};
  if (model_.adversarial) outputs.last = &generator_last_;
  losses.parts.push_back(
      {"generator", by_likelihood ? 1.0 : 0.0, run_generator(masked, dropout, outputs)});
  if (alone) return losses;
  Share fake{"fake_rate"};
  const std::vector<Example> examples = second_examples(selected, sampling.tokens, fake);
  losses.shares.push_back(fake);
  const bool vocabulary = model_.variant->vocabulary;
  const bool ranks_rows = dropout == nullptr && !vocabulary;
  std::vector<double> row_losses;
  const LossReport report =
      run_second(examples, dropout, model_.adversarial || ranks_rows ? &row_losses : nullptr);
  if (ranks_rows) losses.detections = detections_of(examples, row_losses);
  if (model_.adversarial) {
    const Played played = reinforce(selected, sampling.tokens, row_losses, dropout);
    losses.parts.push_back({"reward", 0, played.reward, false});
    losses.parts.push_back({"baseline_loss", 1, played.baseline, false});
  }
  losses.parts.push_back({vocabulary ? "predictor" : "discriminator", options_.weight, report});
  if (!vocabulary) {
    losses.shares.push_back(
        {"discriminator_precision", report.true_positives, report.predicted_replaced});
    losses.shares.push_back({"discriminator_recall", report.true_positives, fake.count});
  }
  return losses;
}

template <class T>
StepLosses ElectraLoss<T>::add_gradients(std::span<const StepItem> items,
                                         const DropoutOptions& dropout) {
  Index rows = 0;
  for (const StepItem& item : items) rows += std::ssize(item.item.ids);
  DropoutOptions own = dropout;
  // With DropToken there are fewer: then numbers are left out, and none is drawn twice.
  own.first_row += totals(ranks(), 0, rows).rows_before;
  StepLosses losses = run(items, &own);
  losses.sum(ranks());
  return losses;
}

template <class T>
StepLosses ElectraLoss<T>::evaluate(std::span<const StepItem> items) {
  return run(items, nullptr);
}

template class ElectraLoss<float>;
template class ElectraLoss<double>;

std::span<const ElectraVariant> electra_variants() { return kVariants; }

const ObjectiveTraits& electra_traits() {
  static const ObjectiveTraits kTraits{
      .options = {"rate", "drop"}, .two_token_types = [](const ObjectiveOptions&) { return true; }};
  return kTraits;
}

const ElectraVariant* find_electra(std::string_view name) {
  const auto* found = std::ranges::find(kVariants, name, &ElectraVariant::name);
  return found == kVariants.end() ? nullptr : found;
}

void adapt_electra(const ElectraVariant& variant, const ObjectiveOptions& requested,
                   model::Design& design) {
  const auto kind = variant.vocabulary ? model::HeadKind::kMasked
                    : variant.energy   ? model::HeadKind::kEnergy
                                       : model::HeadKind::kDiscriminator;
  adapt_design(needs_of(variant.name, requested, kind), design);
  if (variant.vocabulary) return;
  design.head = {};
  design.head.kind = kind;
  design.head.tied = false;
  // E = wᵀ h, with nothing between.
  if (variant.energy) return;
  design.head.transform = true;
  design.head.activation = design.activation;
}

void adapt_generator(const ElectraVariant& variant, const ObjectiveOptions& requested,
                     model::Design& design) {
  DesignNeeds needs = needs_of("generator", requested, model::HeadKind::kMasked);
  if (variant.energy) {
    model::set_towers(design);
    needs.streams = model::Streams::kTowers;
  }
  adapt_design(needs, design);
}

model::Design generator_design(const ElectraVariant& variant, const DesignRecipe& recipe,
                               double size, const ObjectiveOptions& requested,
                               const model::Design& second) {
  if (!(size > 0 && size <= 1)) {
    throw UsageError(fmt::format("{}: found {}, expected more than 0 and at most 1",
                                 field("generator_size"), size));
  }
  model::Design design = design_of(scaled_recipe(recipe, size));
  for (Index l = 0; variant.energy && l < recipe.num_hidden_layers; ++l) {
    design.layers.push_back(design.layers[static_cast<std::size_t>(l)]);
    design.layers.back().weights = design.num_hidden_layers++;
  }
  design.embedding_size = second.embedding_size;
  design.type_vocab_size = second.type_vocab_size;
  design.pad_token_id = second.pad_token_id;
  design.mask_token_id = second.mask_token_id;
  adapt_generator(variant, requested, design);
  return design;
}

NameTable<SharedTables> shared_tables_names() {
  static constexpr std::array<std::pair<std::string_view, SharedTables>, 3> kNames{
      {{"none", SharedTables::kNone},
       {"words", SharedTables::kWords},
       {"all", SharedTables::kAll}}};
  return kNames;
}

std::vector<model::Role> tables_apart(SharedTables shared) {
  if (shared == SharedTables::kAll) return {};
  std::vector<model::Role> apart(kSharedTables.begin(), kSharedTables.end());
  if (shared == SharedTables::kWords) std::erase(apart, model::Role::kWordTable);
  return apart;
}

template <class T>
void add_electra(ElectraModel& model, bool shared, Parameters<T>& parameters) {
  const auto add = [&](const model::Design& design, const std::optional<model::ModelPlan>& own,
                       const std::string& prefix, const ParameterMap& with) {
    const model::ModelPlan plan = own ? *own : model::saved_design(design).plan;
    return add_model(plan, model::head_like(plan, design.head), prefix, with, parameters);
  };
  model.second_map = add(model.second, model.second_plan, "", ParameterMap());
  if (model.adversarial) {
    model.baseline = parameters.add(
        {.name = "generator.baseline", .rows = 1, .columns = model.generator.hidden_size});
  }
  if (model.variant->copies) model.gate = add_copy_gate(model.second.hidden_size, "", parameters);
  ParameterMap tables;
  if (shared) tables = shared_tables(model.second, model.second_map, model.generator);
  for (const model::Role role : model.apart) tables.set(role, false, 0, 0, ParameterMap::kNone);
  model.generator_map = add(model.generator, model.generator_plan, "generator.", tables);
}

template void add_electra(ElectraModel&, bool, Parameters<float>&);
template void add_electra(ElectraModel&, bool, Parameters<double>&);

namespace {

Example framed(const ElectraItem& item, std::vector<TokenId> ids) {
  Example out;
  out.ids = std::move(ids);
  out.positions = item.positions;
  out.segments = item.segments;
  return out;
}

/// In [0, 1), of 52 bits.
double uniform_of(const PhiloxBlock& block) {
  const std::uint64_t bits = (std::uint64_t{block[0]} << 20) | (block[1] >> 12);
  return static_cast<double>(bits) * 0x1p-52;
}

/// All rows, or the selected ones.
std::vector<Index> rows_of(const ElectraItem& item, bool all) {
  if (!all) return item.rows;
  std::vector<Index> rows(item.ids.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<Index>(i);
  return rows;
}

}  // namespace

ElectraSelection::ElectraSelection(const ElectraSelectionOptions& options)
    : tokens_(options.tokens) {
  records::MlmOptions mlm{
      .selection = options.selection, .mask = options.mask, .keep = 1 - options.mask, .random = 0};
  mlm.selection.seed = options.seed;
  if (options.mask > 0 && options.tokens.mask < 0)
    throw UsageError("the tokenizer has no mask token, which the objective needs");
  mlm_ = make_mlm(mlm, options.tokens);
  drop_ = make_dropping(options.drop, options.seed, options.tokens);
}

ElectraItem ElectraSelection::select(const CorpusItem& item, std::uint64_t epoch) const {
  records::Record record = dropped_record(item, epoch, drop_.get());
  ElectraItem out;
  out.ids = record.ids;
  records::Scratch scratch;
  records::Tally tally;
  mlm_->apply(record, scratch, tally);
  out.masked = std::move(record.ids);
  out.positions.assign(record.pos.values.begin(), record.pos.values.end());
  out.segments.assign(record.seg.values.begin(), record.seg.values.end());
  for (std::size_t i = 0; i < out.ids.size(); ++i) {
    if (record.labels.values[i] != records::kNoLabel) out.rows.push_back(static_cast<Index>(i));
    if (!tokens_.is_special(out.ids[i])) out.ordinary.push_back(static_cast<Index>(i));
  }
  return out;
}

std::vector<double> draw_numbers(const CorpusItem& item, std::uint64_t epoch,
                                 std::span<const Index> rows, std::uint64_t seed) {
  const RandomStream stream(seed, fmt::format("generator samples, epoch {}", epoch), item.number);
  std::vector<double> numbers;
  numbers.reserve(rows.size());
  for (const Index row : rows)
    numbers.push_back(uniform_of(stream.block(static_cast<std::uint64_t>(row))));
  return numbers;
}

Example generator_example(const ElectraItem& item) {
  Example out = framed(item, item.masked);
  out.rows = item.rows;
  for (const Index row : item.rows) out.targets.push_back(item.ids[static_cast<std::size_t>(row)]);
  return out;
}

Example drawn_example(const ElectraItem& item, std::span<const TokenId> samples,
                      std::span<const double> weights) {
  Example out = framed(item, item.masked);
  out.rows = item.rows;
  out.targets.assign(samples.begin(), samples.end());
  out.weights.assign(weights.begin(), weights.end());
  return out;
}

std::vector<TokenId> corrupted_ids(const ElectraItem& item, std::span<const TokenId> samples) {
  MASQUE_CHECK(samples.size() == item.rows.size());
  std::vector<TokenId> ids = item.ids;
  for (std::size_t k = 0; k < samples.size(); ++k) {
    ids[static_cast<std::size_t>(item.rows[k])] = samples[k];
  }
  return ids;
}

Example discriminator_example(const ElectraItem& item, std::span<const TokenId> samples, bool all) {
  Example out = framed(item, corrupted_ids(item, samples));
  out.rows = rows_of(item, all);
  for (const Index row : out.rows) {
    const auto i = static_cast<std::size_t>(row);
    out.targets.push_back(out.ids[i] == item.ids[i] ? 0 : 1);
  }
  return out;
}

Example replaced_example(const ElectraItem& item, std::span<const TokenId> samples, bool all) {
  Example out = framed(item, corrupted_ids(item, samples));
  out.rows = rows_of(item, all);
  for (const Index row : out.rows) out.targets.push_back(item.ids[static_cast<std::size_t>(row)]);
  return out;
}

Example cloze_example(const ElectraItem& item) {
  Example out = framed(item, item.ids);
  out.rows = item.ordinary;
  for (const Index row : out.rows) out.targets.push_back(item.ids[static_cast<std::size_t>(row)]);
  return out;
}

std::vector<TokenId> selected_draws(const ElectraItem& item, const NoiseRows& noise) {
  std::vector<TokenId> draws;
  std::size_t k = 0;
  for (const Index row : item.rows) {
    while (item.ordinary[k] != row) ++k;
    draws.push_back(noise.draws[k]);
  }
  return draws;
}

Example energy_example(const ElectraItem& item, const NoiseRows& noise, double rate) {
  MASQUE_CHECK(noise.draws.size() == item.ordinary.size() &&
               noise.losses.size() == item.ordinary.size() &&
               noise.draw_losses.size() == item.ordinary.size());
  Example out = framed(item, corrupted_ids(item, selected_draws(item, noise)));
  out.rows = item.ordinary;
  const double odds = std::log(rate / (1 - rate));
  std::size_t next = 0;  // of the selected
  for (std::size_t k = 0; k < out.rows.size(); ++k) {
    const bool replaced = next < item.rows.size() && item.rows[next] == out.rows[k];
    if (replaced) ++next;
    out.targets.push_back(replaced ? 1 : 0);
    out.offsets.push_back(odds - (replaced ? noise.draw_losses[k] : noise.losses[k]));
  }
  return out;
}

}  // namespace masque::train
