#include "train/run/trainer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "kernel/optimizer.hpp"

namespace masque::train {

namespace {

// Evaluation draws what no epoch of training draws.
constexpr std::uint64_t kEvaluationEpoch = std::uint64_t{1} << 40;
constexpr Index kEvaluationBatch = 64;

}  // namespace

NameTable<Optimizer> optimizer_names() {
  static constexpr std::array<std::pair<std::string_view, Optimizer>, 2> kNames{
      {{"adamw", Optimizer::kAdamW}, {"lamb", Optimizer::kLamb}}};
  return kNames;
}

void check_score_noise(const TrainerOptions& options, const model::Design& design) {
  if (options.score_noise == 0 && options.score_dropout == 0) return;
  if (design.variants.previous_scores != model::PreviousScores::kNone) return;
  throw UsageError(
      fmt::format("{} has no effect: no layer of the model passes scores on; remove it",
                  field(options.score_noise > 0 ? "score_noise" : "score_dropout")));
}

Trainer::Trainer(StepLoss& loss, Parameters<float>& parameters, const Corpus& corpus,
                 const TrainerOptions& options, Ranks& ranks)
    : loss_(loss),
      parameters_(parameters),
      corpus_(corpus),
      ranks_(ranks),
      options_(options),
      order_(corpus.size(), options.seed) {
  if (options.batch_size < ranks.count()) {
    throw UsageError(fmt::format("{} {}: expected at least one sequence for each of {} processes",
                                 field("batch_size"), options.batch_size, ranks.count()));
  }
  loss.set_ranks(ranks);
  loss.check(corpus);
  const auto size = static_cast<Index>(parameters.gradients().size());
  state_.first = Matrix<float>::zero(1, size);
  state_.second = Matrix<float>::zero(1, size);
  state_.updates.assign(static_cast<std::size_t>(parameters.count()), 0);
}

std::vector<StepItem> Trainer::items(std::int64_t step) const {
  std::vector<StepItem> out;
  const auto batch = static_cast<std::uint64_t>(options_.batch_size);
  const RankShare share = share_of(ranks_, options_.batch_size);
  out.reserve(static_cast<std::size_t>(share.end - share.begin));
  for (auto k = static_cast<std::uint64_t>(share.begin); k < static_cast<std::uint64_t>(share.end);
       ++k) {
    const std::uint64_t place = static_cast<std::uint64_t>(step - 1) * batch + k;
    const EpochOrder::Cursor cursor = order_.at(place);
    out.push_back({corpus_.item(cursor.item), cursor.epoch});
    out.back().item.place = place;
  }
  return out;
}

std::vector<StepItem> Trainer::next_items(std::int64_t step) {
  if (!corpus_.in_files()) return items(step);
  std::vector<StepItem> own = ahead_.valid() && ahead_step_ == step ? ahead_.get() : items(step);
  ahead_step_ = step + 1;
  // Where the system gives no thread, it is read when it is needed.
  ahead_ = std::async([this, step] { return items(step + 1); });
  return own;
}

void Trainer::update(StepReport& report) {
  const double norm = std::sqrt(kernel::sum_of_squares<float>(parameters_.gradients()));
  report.gradient_norm = norm;
  if (!std::isfinite(norm)) {
    throw InputError(
        fmt::format("step {}: the gradient is not finite; try a smaller learning rate or a "
                    "longer warm-up",
                    report.step));
  }
  kernel::OptimizerSettings settings;
  settings.beta1 = options_.beta1;
  settings.beta2 = options_.beta2;
  settings.epsilon = options_.epsilon;
  // As torch.nn.utils.clip_grad_norm_.
  if (options_.clip > 0) settings.gradient_scale = std::min(1.0, options_.clip / (norm + 1e-6));
  for (Index i = 0; i < parameters_.count(); ++i) {
    const Parameter& p = parameters_[i];
    if (!p.trained || !loss_.updates(i, report.step)) continue;
    settings.step = ++state_.updates[static_cast<std::size_t>(i)];
    settings.learning_rate = report.learning_rate * p.rate;
    settings.weight_decay = p.decays ? options_.weight_decay : 0;
    const kernel::OptimizedTensor<float> tensor{
        elements_of(parameters_.values(), p.offset, p),
        elements_of(parameters_.gradients(), p.gradient_offset, p),
        elements_of(state_.first.span(), p.gradient_offset, p),
        elements_of(state_.second.span(), p.gradient_offset, p)};
    if (options_.optimizer == Optimizer::kLamb) {
      kernel::lamb_update<float>(settings, tensor);
    } else {
      kernel::adamw_update<float>(settings, tensor);
    }
  }
}

void Trainer::set_done(std::int64_t steps) {
  done_ = steps;
  if (steps > 0) loss_.go_on(steps);
}

void Trainer::set_steps(std::int64_t steps) {
  MASQUE_CHECK(done_ > 0 && steps > done_);
  options_.schedule.changes.push_back({done_, steps});
}

StepReport Trainer::step() {
  StepReport report;
  report.step = done_ + 1;
  report.learning_rate = options_.schedule.at(report.step);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<StepItem> batch = next_items(report.step);
  report.waited = seconds_since(begin);
  report.epoch = order_.at(static_cast<std::uint64_t>(report.step * options_.batch_size - 1)).epoch;
  parameters_.clear_gradients();
  loss_.begin(report.step);
  loss_.prepare();
  DropoutOptions dropout;
  dropout.hidden_dropout = options_.hidden_dropout;
  dropout.attention_dropout = options_.attention_dropout;
  dropout.score_noise = options_.score_noise;
  dropout.score_dropout = options_.score_dropout;
  dropout.seed = options_.seed;
  dropout.step = static_cast<std::uint64_t>(report.step);
  dropout.draw = static_cast<std::uint64_t>(report.step) << 32;
  report.loss = loss_.add_gradients(batch, dropout);
  report.tokens = report.loss.tokens;
  if (!std::isfinite(report.loss.mean())) {
    throw InputError(
        fmt::format("step {}: the loss is not finite; try a smaller learning rate or a longer "
                    "warm-up",
                    report.step));
  }
  ranks_.sum(parameters_.gradients());
  update(report);
  ++done_;
  return report;
}

StepLosses evaluate(StepLoss& loss, const Corpus& corpus, Index most) {
  StepLosses report;
  loss.prepare();
  const Index count = most > 0 ? std::min(most, corpus.size()) : corpus.size();
  std::vector<StepItem> batch;
  for (Index i = 0; i < count; ++i) {
    batch.push_back({corpus.item(i), kEvaluationEpoch});
    if (std::ssize(batch) < kEvaluationBatch && i + 1 < count) continue;
    report.add(loss.evaluate(batch));
    batch.clear();
  }
  return report;
}

LossReport evaluate_never_selected(Network<float>& network, const Objective& objective,
                                   const Corpus& corpus, Index most, std::uint64_t epochs) {
  LossReport report;
  network.prepare();
  const Index count = most > 0 ? std::min(most, corpus.size()) : corpus.size();
  std::vector<Example> batch;
  for (Index i = 0; i < count; ++i) {
    throw_if_interrupted();
    batch.push_back(objective.never_selected_example(corpus.item(i), kEvaluationEpoch, epochs));
    if (std::ssize(batch) < kEvaluationBatch && i + 1 < count) continue;
    report.add(network.evaluate(batch));
    batch.clear();
  }
  return report;
}

}  // namespace masque::train
