#include "train/run/trainer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
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
      order_(corpus.size(), options.seed),
      sums_(ranks, parameters, {options.gradient_precision, options.shard_optimizer}) {
  if (options.shard_optimizer && options.optimizer == Optimizer::kLamb) {
    throw UsageError(
        fmt::format("{} cannot be combined with {} lamb, whose step goes by whole "
                    "tensors; use adamw",
                    field("shard_optimizer"), field("optimizer")));
  }
  if (options.batch_size < ranks.count()) {
    throw UsageError(fmt::format("{} {}: expected at least one sequence for each of {} processes",
                                 field("batch_size"), options.batch_size, ranks.count()));
  }
  loss.set_ranks(ranks);
  loss.set_sums(&sums_);
  loss.check(corpus);
  Index size = std::ssize(parameters.gradients());
  if (shards()) {
    size = 0;
    sums_.for_own([&](const RankShare& part) {
      own_.push_back(part);
      size += part.end - part.begin;
    });
  } else {
    own_.push_back({0, size});
  }
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

template <class F>
void Trainer::for_own_runs(const Parameter& p, const F& visit) const {
  Index at = 0;
  for (const RankShare& part : own_) {
    const Index begin = std::max(part.begin, p.gradient_offset);
    const Index end = std::min(part.end, p.gradient_offset + p.size());
    if (begin < end) visit(begin - p.gradient_offset, end - begin, at + begin - part.begin);
    at += part.end - part.begin;
  }
}

/// Of all gradients together; the same bits with shards() and without.
double Trainer::gradient_norm() {
  const std::span<const float> gradients = parameters_.gradients();
  if (!shards()) return std::sqrt(kernel::sum_of_squares<float>(gradients));
  static_assert(kPartUnit % kernel::kSquaresBlock == 0);
  constexpr auto kBlock = static_cast<std::size_t>(kernel::kSquaresBlock);
  std::vector<double> squares(divide_up(gradients.size(), kBlock));
  for (const RankShare& part : own_) {
    const auto begin = static_cast<std::size_t>(part.begin);
    const auto size = static_cast<std::size_t>(part.end - part.begin);
    kernel::blocks_of_squares<float>(
        gradients.subspan(begin, size),
        std::span(squares).subspan(begin / kBlock, divide_up(size, kBlock)));
  }
  ranks_.sum(std::span(squares));  // each is of one rank
  double whole = 0;
  for (const double block : squares) whole += block;
  return std::sqrt(whole);
}

void Trainer::update(StepReport& report) {
  const double norm = gradient_norm();
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
    for_own_runs(p, [&](Index element, Index count, Index at) {
      const auto run = [&](std::span<float> all, Index first) {
        return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      };
      const kernel::OptimizedTensor<float> tensor{
          run(parameters_.values(), p.offset + element),
          run(parameters_.gradients(), p.gradient_offset + element), run(state_.first.span(), at),
          run(state_.second.span(), at)};
      if (options_.optimizer == Optimizer::kLamb) {
        kernel::lamb_update<float>(settings, tensor);
      } else {
        kernel::adamw_update<float>(settings, tensor);
      }
    });
  }
  if (shards()) share_values();
}

/// Gives the own parts of the new values to all ranks. The gradients, which are no longer needed,
/// are the memory for it: frozen parameters have no place in theirs.
void Trainer::share_values() {
  const auto for_trained = [&](const auto& visit) {
    for (Index i = 0; i < parameters_.count(); ++i) {
      const Parameter& p = parameters_[i];
      if (p.trained) visit(p, parameters_.value(i).data, parameters_.gradient(i).data);
    }
  };
  for_trained([&](const Parameter& p, const float* value, float* sent) {
    for_own_runs(p, [&](Index element, Index count, Index /*at*/) {
      std::copy_n(value + element, count, sent + element);
    });
  });
  sums_.gather(parameters_.gradients());
  for_trained([](const Parameter& p, float* value, const float* sent) {
    std::copy_n(sent, p.size(), value);
  });
}

void Trainer::visit_moments(
    const std::function<void(bool second, std::span<const float> numbers)>& take) {
  for (const bool second : {false, true}) {
    const std::span<const float> own = (second ? state_.second : state_.first).span();
    if (!shards()) {
      take(second, own);
      continue;
    }
    // The gradients, which nobody needs between two steps, are the memory for it.
    const std::span<float> all = parameters_.gradients();
    std::size_t at = 0;
    for (const RankShare& part : own_) {
      const auto size = static_cast<std::size_t>(part.end - part.begin);
      std::ranges::copy(own.subspan(at, size), all.begin() + part.begin);
      at += size;
    }
    sums_.gather(all);
    take(second, all);
  }
}

void Trainer::set_moments(Index i, bool second, std::span<const float> numbers) {
  const std::span<float> own = (second ? state_.second : state_.first).span();
  for_own_runs(parameters_[i], [&](Index element, Index count, Index at) {
    std::copy_n(numbers.data() + element, count, own.data() + at);
  });
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
  sums_.begin();
  report.loss = loss_.add_gradients(batch, dropout);
  sums_.finish();
  report.tokens = report.loss.tokens;
  if (!std::isfinite(report.loss.mean())) {
    throw InputError(
        fmt::format("step {}: the loss is not finite; try a smaller learning rate or a longer "
                    "warm-up",
                    report.step));
  }
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
    if (network.design().head.shifted) leave_out_first_row(batch.back());
    if (std::ssize(batch) < kEvaluationBatch && i + 1 < count) continue;
    report.add(network.evaluate(batch));
    batch.clear();
  }
  return report;
}

}  // namespace masque::train
