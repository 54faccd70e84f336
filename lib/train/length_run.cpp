#include "train/length_run.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/interrupt.hpp"
#include "mask/builtin.hpp"
#include "mask/expression.hpp"
#include "model/masks.hpp"
#include "train/length_store.hpp"

namespace masque::train {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kTrialShare = 0.05;  // of the budget, for all arms
constexpr double kMostTrial = 1;      // seconds
constexpr Index kTrialExamples = 8;   // one of so many
// Examples that a signal waits for.
constexpr std::size_t kBatch = 16;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// With the keys hidden that are `window` or more away.
Example windowed(const Example& from, const model::Design& design, Index window) {
  Example example = from;
  const Lengths lengths{from.size(), from.size()};
  const Mask near = band(lengths, 1 - window, window - 1);
  const Mask usual = parse_mask(model::default_mask_name(design.mask)).bind(lengths);
  example.mask = usual & near;
  return example;
}

/// One of `every` examples.
LengthRow score(const LengthSubject& subject, Network<float>& network, Index window, Index length,
                Index every = 1) {
  LossReport report;
  Index sequences = 0, right = 0;
  std::vector<Example> batch;
  const auto run = [&] {
    throw_if_interrupted();
    const LossReport one = network.evaluate(batch);
    report.add(one);
    ++sequences;
    if (one.correct == one.rows) ++right;
    batch.clear();
  };
  const std::size_t most = subject.whole() ? 1 : kBatch;
  const std::vector<Example>& all = subject.examples(length);
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

class Run {
 public:
  explicit Run(const LengthRequest& request) : request_(request), store_(request.folder) {}

  LengthResult all() {
    LengthResult result;
    result.steps = request_.steps ? *request_.steps : budget_steps();
    for (std::size_t arm = 0; arm < request_.arms; ++arm) {
      for (const std::uint64_t seed : request_.seeds) {
        const RunOptions options = request_.options(arm, result.steps, seed);
        result.settings.push_back(settings(options));
        auto rows = store_.find(result.settings.back(), arm, seed);
        if (!rows) {
          rows = train(options, arm, seed);
          store_.keep(result.settings.back(), *rows);
        }
        result.rows.insert(result.rows.end(), rows->begin(), rows->end());
      }
    }
    return result;
  }

 private:
  LengthSubject::Settings settings(const RunOptions& options) const {
    LengthSubject::Settings all = options.settings;
    for (auto& more : request_.subject->settings()) all.push_back(std::move(more));
    all.emplace_back("eval_lengths", fmt::format("{}", fmt::join(request_.eval_lengths, ",")));
    all.emplace_back("windows", fmt::format("{}", fmt::join(request_.windows, ",")));
    return all;
  }

  std::vector<LengthRow> train(const RunOptions& options, std::size_t arm,
                               std::uint64_t seed) const {
    const auto begin = Clock::now();
    const auto learner = request_.subject->learner(options);
    Index tokens = 0;
    double loss = 0;
    const std::int64_t steps = options.trainer.schedule.steps;
    for (std::int64_t s = 0; s < steps; ++s) {
      throw_if_interrupted();
      const StepReport report = learner->trainer().step();
      tokens += report.tokens;
      loss = report.loss.mean();
    }
    const double seconds = seconds_since(begin);
    request_.note(
        fmt::format("arm {} of {}, seed {}: {} steps, {} tokens, last loss {:.4f}, "
                    "{:.0f} s",
                    arm + 1, request_.arms, seed, steps, tokens, loss, seconds));
    learner->network().prepare();
    std::vector<LengthRow> rows;
    for (const Index window : request_.windows) {
      for (const Index length : request_.eval_lengths) {
        rows.push_back(score(*request_.subject, learner->network(), window, length));
        rows.back().arm = arm;
        rows.back().seed = seed;
      }
    }
    return rows;
  }

  /// As many steps as all arms can make together in the time.
  std::int64_t budget_steps() {
    const auto begin = Clock::now();
    LengthSubject::Settings asked{{"budget", fmt::format("{}", request_.budget_seconds)},
                                  {"seeds", fmt::format("{}", fmt::join(request_.seeds, ","))}};
    for (std::size_t arm = 0; arm < request_.arms; ++arm) {
      for (const auto& one : settings(request_.options(arm, 1, 0))) asked.push_back(one);
    }
    const std::string digest = settings_digest(asked);
    if (const auto known = store_.steps(digest)) return *known;
    const double trial = std::min(
        kMostTrial, request_.budget_seconds * kTrialShare / static_cast<double>(request_.arms));
    double step_seconds = 0, score_seconds = 0;
    for (std::size_t arm = 0; arm < request_.arms; ++arm) {
      RunOptions options = request_.options(arm, 1, request_.seeds.front());
      options.trainer.schedule.learning_rate = 0;
      const auto learner = request_.subject->learner(options);
      learner->trainer().step();  // the first one touches all memory
      const auto start = Clock::now();
      int steps = 0;
      do {
        learner->trainer().step();
        ++steps;
      } while (seconds_since(start) < trial);
      step_seconds += seconds_since(start) / steps;
      learner->network().prepare();
      const auto scoring = Clock::now();
      for (const Index window : request_.windows) {
        for (const Index length : request_.eval_lengths)
          score(*request_.subject, learner->network(), window, length, kTrialExamples);
      }
      score_seconds += seconds_since(scoring) * static_cast<double>(kTrialExamples);
    }
    const auto seeds = static_cast<double>(request_.seeds.size());
    const double left = request_.budget_seconds - request_.spent_seconds - seconds_since(begin) -
                        seeds * score_seconds;
    const auto steps = static_cast<std::int64_t>(left / (seeds * step_seconds));
    if (steps < 1) {
      throw UsageError(
          fmt::format("--budget: {:.0f} s of it are for scoring, expected more time, or "
                      "less to score",
                      seeds * score_seconds));
    }
    request_.note(fmt::format("{:.0f} s for scoring, the rest for --steps {} of every arm and seed",
                              seeds * score_seconds, steps));
    store_.keep_steps(digest, steps);
    return steps;
  }

  const LengthRequest& request_;
  LengthStore store_;
};

}  // namespace

LengthResult run_lengths(const LengthRequest& request) {
  MASQUE_CHECK(request.arms > 0 && !request.seeds.empty() && !request.eval_lengths.empty());
  const LengthSubject& subject = *request.subject;
  for (std::size_t arm = 0; arm < request.arms; ++arm) {
    if (request.options(arm, 1, 0).design.position != "learned" ||
        subject.longest_scored() <= subject.longest_trained())
      continue;
    throw UsageError(
        fmt::format("--position learned has {} places, found sequences of {} to score, "
                    "expected no longer ones, or learned(alpha=0.4), which extends its table",
                    subject.longest_trained(), subject.longest_scored()));
  }
  return Run(request).all();
}

std::vector<LengthSummary> summarise_lengths(const std::vector<LengthRow>& rows) {
  std::vector<LengthSummary> all;
  const auto is = [](const LengthSummary& s, const LengthRow& r) {
    return s.arm == r.arm && s.window == r.window && s.length == r.length;
  };
  for (const LengthRow& row : rows) {
    if (std::ranges::any_of(all, [&](const auto& s) { return is(s, row); })) continue;
    LengthSummary& cell = all.emplace_back();
    cell.arm = row.arm;
    cell.window = row.window;
    cell.length = row.length;
    cell.targets = row.targets;
    const auto over_seeds = [&](double LengthRow::*field) {
      std::vector<double> values;
      for (const LengthRow& one : rows) {
        if (is(cell, one)) values.push_back(one.*field);
      }
      return probe::summarise(values, {});
    };
    cell.accuracy = over_seeds(&LengthRow::accuracy);
    cell.loss = over_seeds(&LengthRow::loss);
    cell.whole = over_seeds(&LengthRow::whole);
  }
  return all;
}

}  // namespace masque::train
