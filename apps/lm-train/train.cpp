// The loop of a training run: steps, what is told of them, checkpoints.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/interrupt.hpp"
#include "base/parallel.hpp"
#include "draw/chart.hpp"
#include "draw/svg.hpp"
#include "kernel/parallel.hpp"
#include "probe/sentence.hpp"
#include "train_options.hpp"

namespace masque::lm_train {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kSecondsBetween = 60;  // of checkpoints
constexpr double kTrialSeconds = 2;
constexpr std::int64_t kDefaultSteps = 1000;
// Of the line that is told of the loss.
constexpr std::int64_t kTold = 20;

train::CorpusFormat format_of(const std::string& name) {
  using train::CorpusFormat;
  if (name == "lines") return CorpusFormat::kLines;
  if (name == "blocks") return CorpusFormat::kBlocks;
  if (name == "records") return CorpusFormat::kRecords;
  if (name == "pairs") return CorpusFormat::kPairs;
  throw UsageError(
      fmt::format("--format: found '{}', expected lines, blocks, records or pairs", name));
}

train::CorpusOptions corpus_options(const Options& o) {
  train::CorpusOptions options;
  options.format = format_of(o.format);
  options.length = o.length;
  options.threads = o.common.threads;
  return options;
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

/// Of several networks each one's loss and accuracy, and what else was counted.
std::string parts(const train::StepLosses& losses, std::string_view prefix) {
  std::string text;
  for (const train::LossPart& part : losses.parts) {
    const train::LossReport& report = part.report;
    if (report.sequences > 0) {
      for (std::size_t k = 0; k < train::kDiversities; ++k) {
        const double mean = report.diversity[k] / static_cast<double>(report.sequences);
        text +=
            fmt::format(R"(,"{}diversity_{}":{})", prefix, train::kDiversityNames[k], number(mean));
      }
    }
    if (part.name.empty()) continue;
    if (!part.judged) {
      text += fmt::format(R"(,"{}{}":{})", prefix, part.name, number(report.mean()));
      continue;
    }
    text += fmt::format(R"(,"{0}{1}_loss":{2},"{0}{1}_accuracy":{3})", prefix, part.name,
                        number(report.mean()), number(report.accuracy()));
  }
  for (const train::Share& share : losses.shares) {
    text += fmt::format(R"(,"{}{}":{})", prefix, share.name,
                        number(static_cast<double>(share.count) / static_cast<double>(share.of)));
  }
  return text;
}

/// The run as it goes: counts, metrics, what is left.
class Log {
 public:
  Log(const Options& options, cli::Session& session, std::int64_t steps)
      : options_(options), session_(session), steps_(steps) {}

  std::string& metrics() { return metrics_; }

  void step(const train::StepReport& r) {
    losses_.push_back(r.loss.mean());
    tokens_ += r.tokens;
    metrics_ += fmt::format(
        R"({{"step":{},"loss":{},"accuracy":{},"learning_rate":{},"gradient_norm":{},"tokens":{}{}}})"
        "\n",
        r.step, number(r.loss.mean()), number(r.loss.accuracy()), r.learning_rate,
        number(r.gradient_norm), r.tokens, parts(r.loss, ""));
    const std::int64_t every = std::max<std::int64_t>(1, steps_ / kTold);
    if (r.step % every != 0 && r.step != steps_) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    const auto own = static_cast<double>(losses_.size());
    const auto last = std::min<std::size_t>(losses_.size(), static_cast<std::size_t>(every));
    double mean = 0;
    for (std::size_t i = losses_.size() - last; i < losses_.size(); ++i) mean += losses_[i];
    session_.note(fmt::format("step {} of {}: loss {:.4f}, {:.0f} tokens/s, {:.0f} s left", r.step,
                              steps_, mean / static_cast<double>(last),
                              static_cast<double>(tokens_) / seconds,
                              seconds / own * static_cast<double>(steps_ - r.step)));
  }

  /// Of all steps that are told in `metrics`, one point of so many.
  std::string picture() const {
    draw::Curve curve{"loss", {}, {}};
    const std::size_t width = std::max<std::size_t>(1, losses_.size() / 200);
    for (std::size_t i = 0; i + width <= losses_.size(); i += width) {
      double mean = 0;
      for (std::size_t k = i; k < i + width; ++k) mean += losses_[k] / static_cast<double>(width);
      curve.x.push_back(static_cast<double>(first_ + static_cast<std::int64_t>(i + width)));
      curve.y.push_back(mean);
    }
    draw::Chart chart;
    chart.title = fmt::format("{}: loss", options_.objective);
    chart.x.name = "step";
    chart.y.name = "nats a token";
    chart.curves.push_back(std::move(curve));
    return draw::svg(chart);
  }
  /// Steps before this process.
  void set_first(std::int64_t first) { first_ = first; }

  void evaluation(std::int64_t step, const train::StepLosses& r) {
    metrics_ +=
        fmt::format(R"({{"step":{},"eval_loss":{},"eval_accuracy":{},"eval_rows":{}{}}})"
                    "\n",
                    step, number(r.mean()), number(r.accuracy()), r.rows(), parts(r, "eval_"));
    session_.note(fmt::format("step {}: eval loss {:.4f}, accuracy {:.4f} of {} tokens", step,
                              r.mean(), r.accuracy(), r.rows()));
  }

  void never_selected(std::int64_t step, const train::LossReport& r) {
    metrics_ += fmt::format(
        R"({{"step":{},"never_selected_loss":{},"never_selected_accuracy":{},"never_selected_rows":{}}})"
        "\n",
        step, number(r.mean()), number(r.accuracy()), r.rows);
    session_.note(fmt::format("step {}: loss where training has none {:.4f}, accuracy {:.4f}", step,
                              r.mean(), r.accuracy()));
  }

 private:
  const Options& options_;
  cli::Session& session_;
  std::int64_t steps_;
  Clock::time_point begin_ = Clock::now();
  std::vector<double> losses_;
  Index tokens_ = 0;
  std::int64_t first_ = 0;
  std::string metrics_;
};

std::int64_t choose_steps(const Options& o, const records::SimilarTokens& similar,
                          const text::Tokenizer& tokenizer, const train::Corpus& corpus,
                          bool goes_on, cli::Session& session) {
  if (o.steps && o.budget) throw UsageError("--steps and --budget: expected one of them");
  if (o.budget && o.switch_step) {
    throw UsageError("--budget with --switch: its stages take different times, expected --steps");
  }
  if (!o.budget) return o.steps.value_or(kDefaultSteps);
  // What was measured once holds for the whole run.
  if (goes_on) return std::stoll(train::TrainingRun::saved_setting(o.output, "steps"));
  const double seconds = common::parse_seconds(*o.budget);
  const double trial = std::min(kTrialSeconds, seconds / 10);
  const double speed = train::measure_speed(run_options(o, similar, 1), tokenizer, corpus, trial);
  const auto steps = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(speed * std::max(seconds - 2 * trial, seconds / 2)));
  session.note(fmt::format("{:.2f} steps a second: --steps {}", speed, steps));
  return steps;
}

void train_steps(const Options& o, train::TrainingRun& run,
                 const std::optional<train::Corpus>& eval, std::int64_t steps, Log& log, bool saved,
                 cli::Session& session) {
  train::Trainer& trainer = run.trainer();
  auto last_save = Clock::now();
  const auto save = [&] {
    run.save(o.output, saved, {log.metrics(), log.picture()});
    saved = true;
    last_save = Clock::now();
  };
  if (!saved) save();
  const auto failed = caught([&] {
    while (trainer.done() < steps) {
      throw_if_interrupted();
      log.step(trainer.step());
      const std::int64_t done = trainer.done();
      if ((o.eval_every > 0 && done % o.eval_every == 0) || done == steps) {
        if (eval) log.evaluation(done, run.evaluate(*eval, o.eval_sequences));
        if (run.has_never_selected())
          log.never_selected(done, run.evaluate_never_selected(o.eval_sequences));
      }
      const double since = std::chrono::duration<double>(Clock::now() - last_save).count();
      if (o.checkpoint_every > 0 ? done % o.checkpoint_every == 0 : since > kSecondsBetween) save();
    }
  });
  {
    // A step that a signal broke off has changed nothing: what was reached is saved. Behind another
    // failure the last checkpoint stays.
    const InterruptsHeld held;
    if (!failed || held.interrupted()) save();
    session.say_if_interrupted(
        fmt::format("{} is at step {}, --resume goes on", o.output, trainer.done()));
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace

cli::ExitCode run_train(const Options& o, cli::Session& session) {
  session.configure(o.common);
  common::check_objective(o);
  train::CorpusOptions reading = corpus_options(o);
  kernel::set_threads(o.common.threads);
  const bool goes_on = o.resume && train::TrainingRun::has_state(o.output);
  if (!goes_on && exists(o.output)) {
    throw InputError(o.output, o.resume ? "there, but without training.safetensors of a run"
                                        : "there already, expected a new folder, or --resume");
  }
  const text::Tokenizer tokenizer = text::Tokenizer::open(o.tokenizer);
  for (const std::string& warning : tokenizer.warnings()) session.note(warning);
  const records::SimilarTokens similar = similar_of(o, tokenizer, session);
  // What a causal model reads in front of a line, where the template has nothing.
  if (o.objective == "clm") reading.begin = probe::begin_token(tokenizer);
  train::Corpus corpus = train::read_corpus(o.text, tokenizer, reading);
  std::optional<train::Corpus> eval;
  if (o.eval_text) eval = train::read_corpus(*o.eval_text, tokenizer, reading);
  const std::int64_t steps = choose_steps(o, similar, tokenizer, corpus, goes_on, session);
  if (o.switch_step && *o.switch_step >= steps) {
    throw UsageError(
        fmt::format("--switch {}: expected fewer than the {} steps", *o.switch_step, steps));
  }
  train::TrainingRun run(run_options(o, similar, steps), tokenizer, std::move(corpus));
  session.note(fmt::format("{}, {} parameters; {} sequences, {} tokens", run.family(),
                           run.parameter_count(), run.corpus().size(), run.corpus().tokens()));
  Log log(o, session, steps);
  if (goes_on) {
    log.metrics() = run.resume(o.output);
    log.set_first(run.trainer().done());
    session.note(fmt::format("goes on behind step {}", run.trainer().done()));
  }
  train_steps(o, run, eval, steps, log, goes_on, session);
  session.note(fmt::format("{}: written", o.output));
  return cli::ExitCode::kDone;
}

}  // namespace masque::lm_train
