#include "train/electra_loss.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/random.hpp"

namespace masque::train {

using model::Role;

namespace {

/// In [0, 1), of 52 bits.
double uniform_of(const PhiloxBlock& block) {
  const std::uint64_t bits = (std::uint64_t{block[0]} << 20) | (block[1] >> 12);
  return static_cast<double>(bits) * 0x1p-52;
}

void add_uniforms(const StepItem& item, const ElectraItem& selected, std::uint64_t seed,
                  std::vector<double>& uniforms) {
  const RandomStream stream(seed, fmt::format("generator samples, epoch {}", item.epoch),
                            item.item.number);
  for (const Index row : selected.rows)
    uniforms.push_back(uniform_of(stream.block(static_cast<std::uint64_t>(row))));
}

bool of_head(Role role) {
  return role == Role::kHeadTransform || role == Role::kHeadNorm || role == Role::kDecoder;
}

/// The noise of the generator has nothing to do with that of the other.
Noise other_noise(const Noise& noise) {
  Noise other = noise;
  other.seed = ~noise.seed;
  return other;
}

}  // namespace

template <class T>
ElectraLoss<T>::ElectraLoss(const ElectraOptions& options, const ElectraModel& model,
                            Parameters<T>& parameters)
    : options_(options),
      model_(model),
      parameters_(parameters),
      selection_(options.selection),
      generator_(model.generator, model.generator_slots, parameters, options.precision),
      second_(model.second, model.second_slots, parameters, options.precision, model.gate),
      of_generator_(static_cast<std::size_t>(parameters.count()), false) {
  generator_.chunk_rows = second_.chunk_rows = options.chunk_rows;
  model.generator_slots.for_each([&](Role, bool, Index, Index, Index parameter) {
    of_generator_[static_cast<std::size_t>(parameter)] = true;
  });
  model.second_slots.for_each([&](Role, bool, Index, Index, Index parameter) {
    const auto at = static_cast<std::size_t>(parameter);
    MASQUE_CHECK(!of_generator_[at] || options.switch_step == 0);
    of_generator_[at] = false;
  });
}

template <class T>
void ElectraLoss<T>::check(const Corpus& corpus) const {
  if (corpus.pairs() && !options_.pairs)
    throw InputError("sequences of two segments, expected those of one");
}

template <class T>
void ElectraLoss<T>::start_second() {
  model_.generator_slots.for_each([&](Role role, bool bias, Index layer, Index part, Index from) {
    if (of_head(role)) return;
    const Index to = bias ? model_.second_slots.bias(role, layer)
                          : model_.second_slots.weight(role, layer, part);
    if (to == Slots::kNone || parameters_[to].rows != parameters_[from].rows ||
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
  if (options_.switch_step > 0 && step == options_.switch_step + 1) start_second();
}

template <class T>
void ElectraLoss<T>::prepare() {
  generator_.prepare();
  second_.prepare();
}

template <class T>
std::int64_t ElectraLoss<T>::update_of(Index parameter, std::int64_t step) const {
  if (options_.switch_step == 0) return step;
  const bool generator = of_generator_[static_cast<std::size_t>(parameter)];
  if (generator != first_stage(step)) return 0;
  return generator ? step : step - options_.switch_step;
}

template <class T>
LossReport ElectraLoss<T>::run_generator(std::span<const ElectraItem> selected, const Noise* noise,
                                         Sampling* sampling) {
  std::vector<Example> examples;
  examples.reserve(selected.size());
  for (const ElectraItem& item : selected) examples.push_back(generator_example(item));
  const bool learns = options_.switch_step == 0 || first_stage(step_);
  if (noise == nullptr || !learns) return generator_.evaluate(examples, sampling);
  const RankTotals whole = totals(ranks(), total_weight(examples), 0);
  if (whole.weight == 0) return generator_.evaluate(examples, sampling);
  return generator_.train(examples, 1 / whole.weight, other_noise(*noise), sampling);
}

template <class T>
LossReport ElectraLoss<T>::run_second(std::span<const Example> examples, const Noise* noise) {
  if (noise == nullptr || options_.weight == 0) return second_.evaluate(examples);
  const RankTotals whole = totals(ranks(), total_weight(examples), 0);
  if (whole.weight == 0) return second_.evaluate(examples);
  return second_.train(examples, options_.weight / whole.weight, *noise);
}

template <class T>
StepLosses ElectraLoss<T>::run(std::span<const StepItem> items, const Noise* noise) {
  const bool alone = first_stage(step_);
  StepLosses losses;
  std::vector<ElectraItem> selected;
  Sampling sampling;
  selected.reserve(items.size());
  for (const StepItem& item : items) {
    selected.push_back(selection_.select(item.item, item.epoch));
    losses.tokens += std::ssize(selected.back().ids);
    if (!alone) add_uniforms(item, selected.back(), options_.selection.seed, sampling.uniforms);
  }
  const double factor = options_.switch_step == 0 || alone ? 1 : 0;
  losses.parts.push_back(
      {"generator", factor, run_generator(selected, noise, alone ? nullptr : &sampling)});
  if (alone) return losses;
  std::vector<Example> examples;
  examples.reserve(items.size());
  std::span<const TokenId> samples = sampling.tokens;
  Share fake{"fake_rate", 0, std::ssize(samples)};
  for (const ElectraItem& item : selected) {
    const auto own = samples.first(item.rows.size());
    samples = samples.subspan(item.rows.size());
    for (std::size_t k = 0; k < own.size(); ++k)
      fake.count += own[k] == item.ids[static_cast<std::size_t>(item.rows[k])] ? 0 : 1;
    const ElectraVariant& variant = *model_.variant;
    examples.push_back(variant.vocabulary ? replaced_example(item, own, variant.all)
                                          : discriminator_example(item, own, variant.all));
  }
  losses.shares.push_back(fake);
  const LossReport report = run_second(examples, noise);
  const bool vocabulary = model_.variant->vocabulary;
  losses.parts.push_back({vocabulary ? "predictor" : "discriminator", options_.weight, report});
  if (!vocabulary) {
    losses.shares.push_back({"discriminator_precision", report.found, report.called});
    losses.shares.push_back({"discriminator_recall", report.found, fake.count});
  }
  return losses;
}

template <class T>
StepLosses ElectraLoss<T>::add_gradients(std::span<const StepItem> items, const Noise& noise) {
  Index rows = 0;
  for (const StepItem& item : items) rows += std::ssize(item.item.ids);
  Noise own = noise;
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

}  // namespace masque::train
