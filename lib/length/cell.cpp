#include "length/cell.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/thread/interrupt.hpp"
#include "mask/builtin.hpp"
#include "mask/expression.hpp"
#include "model/checkpoint/training_state.hpp"
#include "model/masks.hpp"
#include "store/checkpoint.hpp"
#include "store/checkpoint_writer.hpp"
#include "train/run/trainer_state.hpp"
#include "train/run/training_loop.hpp"

namespace masque::length {

namespace {

using Clock = std::chrono::steady_clock;

// Examples that a signal waits for.
constexpr std::size_t kBatch = 16;

/// With the keys hidden that are `window` or more away.
train::Example windowed(const train::Example& from, const model::Design& design, Index window) {
  train::Example example = from;
  const mask::Lengths lengths{from.size(), from.size()};
  const mask::Mask near = mask::band(lengths, 1 - window, window - 1);
  const mask::Mask usual = model::own_mask(design, from.size());
  example.mask = usual & near;
  return example;
}

class Cell {
 public:
  Cell(const LengthRequest& request, const train::RunOptions& options, std::size_t arm,
       std::uint64_t seed, const CellFiles& files)
      : request_(request),
        options_(options),
        arm_(arm),
        seed_(seed),
        files_(files),
        learner_(request.subject->learner(options)) {}

  std::vector<LengthRow> all() {
    learn();
    const Index positions = request_.subject->longest_trained();
    if (!files_.model.empty()) learner_->save(files_.model, positions);
    score(scored_lengths(request_, options_.design), false);
    if (request_.finetuning) finetune(*request_.finetuning);
    return std::move(rows_);
  }

 private:
  void learn() {
    const auto begin = Clock::now();
    train::Trainer& trainer = learner_->trainer();
    Index tokens = 0;
    double loss = std::numeric_limits<double>::quiet_NaN();
    const std::int64_t steps = options_.trainer.schedule.steps;
    if (exists(files_.checkpoint)) {
      const store::Checkpoint state = store::open_checkpoint(files_.checkpoint);
      model::check_state(state, files_.checkpoint);
      train::read_trainer_state(state, files_.checkpoint, trainer, learner_->parameters());
      request_.note(fmt::format("{}: continues after step {}", name(), trainer.done()));
      if (trainer.done() == steps) return;
    }
    const std::int64_t first = trainer.done();
    train::TrainingLoop loop;
    loop.report = [&](const train::StepReport& report) {
      tokens += report.tokens;
      loss = report.loss.mean();
    };
    // What comes after the last step has no checkpoint of its own.
    loop.save = [&] {
      store::OutputWeights state = train::trainer_state(trainer, learner_->parameters());
      model::add_state_digests(state);
      store::write_checkpoint_file(files_.checkpoint, state, {});
    };
    train::run_steps(trainer, loop);
    request_.note(fmt::format("{}: {} steps, {} tokens, last loss {:.4f}, {:.0f} s", name(),
                              steps - first, tokens, loss, seconds_since(begin)));
  }

  /// Every fine-tuning begins with the values that training has left.
  void finetune(const Finetuning& finetuning) {
    const std::span<float> values = learner_->parameters().values();
    const std::vector<float> trained(values.begin(), values.end());
    for (const Index length : finetuning.lengths) {
      const auto begin = Clock::now();
      std::ranges::copy(trained, values.begin());
      const auto trainer = learner_->finetuner(length, finetuning_options(options_, finetuning));
      Index tokens = 0;
      train::TrainingLoop loop;
      loop.report = [&](const train::StepReport& report) { tokens += report.tokens; };
      train::run_steps(*trainer, loop);
      request_.note(fmt::format("{}, fine-tuned at {}: {} steps, {} tokens, {:.0f} s", name(),
                                length, finetuning.schedule.steps, tokens, seconds_since(begin)));
      if (!files_.model.empty()) {
        const LengthSubject& subject = *request_.subject;
        learner_->save(finetuned_model(files_.model, length),
                       std::max(subject.longest_trained(), subject.tokens(length)));
      }
      score({length}, true);
    }
  }

  void score(const std::vector<Index>& lengths, bool finetuned) {
    learner_->network().prepare();
    for (const Index window : request_.windows) {
      for (const Index length : lengths) {
        LengthRow& row =
            rows_.emplace_back(score_at(*request_.subject, learner_->network(), window, length));
        row.arm = arm_;
        row.seed = seed_;
        row.finetuned = finetuned;
      }
    }
  }

  std::string name() const {
    return fmt::format("design {} of {}, seed {}", arm_ + 1, request_.arms, seed_);
  }

  const LengthRequest& request_;
  const train::RunOptions& options_;
  std::size_t arm_;
  std::uint64_t seed_;
  const CellFiles& files_;
  std::unique_ptr<Learner> learner_;
  std::vector<LengthRow> rows_;
};

}  // namespace

LengthRow score_at(const LengthSubject& subject, train::Network<float>& network, Index window,
                   Index length, Index every) {
  train::LossReport report;
  Index sequences = 0, right = 0;
  std::vector<train::Example> batch;
  const auto run = [&] {
    throw_if_interrupted();
    const train::LossReport one = network.evaluate(batch);
    report.add(one);
    ++sequences;
    if (one.correct == one.rows) ++right;
    batch.clear();
  };
  const std::size_t most = subject.whole() ? 1 : kBatch;
  const std::vector<train::Example>& all = subject.examples(length);
  for (std::size_t i = 0; i < all.size(); i += static_cast<std::size_t>(every)) {
    batch.push_back(window > 0 ? windowed(all[i], network.design(), window) : all[i]);
    if (batch.size() == most) run();
  }
  if (!batch.empty()) run();
  LengthRow row;
  row.window = window;
  row.length = length;
  row.loss = report.mean();
  row.accuracy = report.accuracy();
  row.whole = subject.whole() ? static_cast<double>(right) / static_cast<double>(sequences)
                              : std::numeric_limits<double>::quiet_NaN();
  row.targets = report.rows;
  return row;
}

std::vector<Index> scored_lengths(const LengthRequest& request, const train::DesignRecipe& design) {
  std::vector<Index> lengths = request.eval_lengths;
  const LengthSubject& subject = *request.subject;
  const Index count = position_count(design, subject.longest_trained());
  if (count > 0)
    std::erase_if(lengths, [&](Index length) { return subject.tokens(length) > count; });
  return lengths;
}

std::string finetuned_model(const std::string& model, Index length) {
  return fmt::format("{}-finetuned-{}", model, length);
}

train::TrainerOptions finetuning_options(const train::RunOptions& options,
                                         const Finetuning& finetuning) {
  train::TrainerOptions trainer = options.trainer;
  trainer.schedule = finetuning.schedule;
  return trainer;
}

std::vector<LengthRow> train_cell(const LengthRequest& request, const train::RunOptions& options,
                                  std::size_t arm, std::uint64_t seed, const CellFiles& files) {
  return Cell(request, options, arm, seed, files).all();
}

}  // namespace masque::length
