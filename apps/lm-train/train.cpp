// The loop of a training run: steps, what is reported of them, checkpoints.
#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/output_folder.hpp"
#include "base/parallel.hpp"
#include "base/shortage.hpp"
#include "base/work_lock.hpp"
#include "budget.hpp"
#include "commands/corpus_notes.hpp"
#include "commands/model_notes.hpp"
#include "commands/sequences.hpp"
#include "kernel/parallel.hpp"
#include "log.hpp"
#include "probe/score/sentence.hpp"
#include "text/template_tokens.hpp"
#include "train/run/folder_parts.hpp"
#include "train/run/trainer_state.hpp"
#include "train/run/training_loop.hpp"
#include "train_options.hpp"

namespace masque::lm_train {

namespace {

using Clock = std::chrono::steady_clock;

// Of the time of a training step.
constexpr double kForwardShare = 1.0 / 3;

train::CorpusFormat format_of(const std::string& name) {
  using train::CorpusFormat;
  if (name == "lines") return CorpusFormat::kLines;
  if (name == "blocks") return CorpusFormat::kBlocks;
  if (name == "records") return CorpusFormat::kRecords;
  if (name == "pairs") return CorpusFormat::kPairs;
  throw UsageError(fmt::format("{}: found '{}', expected lines, blocks, records or pairs",
                               field("format"), name));
}

train::CorpusOptions corpus_options(const TrainOptions& o) {
  train::CorpusOptions options;
  options.format = format_of(o.format);
  options.length = o.length;
  options.labels = o.objective == "records";
  options.dropped = o.objective == train::kMae || o.objective == "mae-mask";
  options.corrections = o.objective == train::kCorrect;
  options.threads = o.common.threads;
  options.field = o.field;
  options.json_is_text = o.requested_format == "lines";
  options.json_advice = fmt::format(
      "{} NAME reads the member NAME of the JSON object on each line, {} records reads records, {} "
      "lines reads the lines as they are",
      field("field"), field("format"), field("format"));
  return options;
}

/// A plan of many changes is read from the folder, not from the message.
std::string shown_plan(const std::string& plan) {
  constexpr std::size_t kMost = 60;
  return plan.size() <= kMost ? plan : plan.substr(0, plan.rfind(',', kMost)) + ",…";
}

/// What was changed and cut, and pairs that are no training text for corrections, if there are any.
void note_lines(const train::Corpus& corpus, cli::Session& session) {
  commands::note_corpus(corpus, session, true);
  if (corpus.left_out() == 0) return;
  session.note(fmt::format("{}: skipped {} of {} pairs: their texts differ in the number of tokens",
                           corpus.source(), corpus.left_out(), corpus.left_out() + corpus.size()));
}

/// Throws InputError for a tokenizer with more tokens than the model has embeddings.
void check_vocabulary(const text::Tokenizer& tokenizer, const std::string& path,
                      const model::StartingModel& start) {
  const auto tokens = static_cast<Index>(tokenizer.size());
  const Index most = start.design().vocab_size;
  if (tokens <= most) return;
  throw InputError(
      path, fmt::format("the tokenizer has {} tokens, expected at most {}, the vocabulary of {}",
                        tokens, most, start.path()));
}

/// The steps of a run, on every rank; the first one alone writes and evaluates.
class Loop {
 public:
  Loop(const TrainOptions& options, train::TrainingRun& run,
       const std::optional<train::Corpus>& eval, Plan plan, Clock::time_point begin,
       cli::Session& session)
      : options_(options),
        run_(run),
        eval_(eval),
        plan_(std::move(plan)),
        ranks_(options.launch->ranks()),
        begin_(begin),
        session_(session),
        log_(options, run, session) {}

  void go_on(train::PlannedSteps planned) {
    run_.resume(options_.output, planned);
    log_.go_on(join(options_.output, train::kMetricsName));
    saved_ = true;
    const std::int64_t done = saved_step_ = trainer().done();
    if (done == trainer().steps()) {
      session_.note(fmt::format("{} finished after step {}; {} MORE continues", options_.output,
                                done, field("steps")));
      return;
    }
    session_.note(fmt::format("resuming after step {}", done));
    if (planned == train::PlannedSteps::kSame) return;
    session_.note(
        fmt::format("the learning rate {}", trainer().options().schedule.course_after(done)));
  }

  void all() {
    // All have seen that the folder is not there.
    any(ranks_, false);
    if (!saved_) save();
    if (plan_.time_budget) plan_.time_budget->begin(spent());
    train::TrainingLoop loop;
    loop.begin = [this] { evaluate_if_due(); };  // a signal may have broken it off
    loop.agree = [this] { keep_time(); };
    loop.report = [this](const train::StepReport& report) {
      log_.step(report, steps());
      evaluate_if_due();
    };
    loop.save = [this] { save(); };
    loop.save_every = options_.checkpoint_every;
    loop.end = [this] {
      session_.say_if_interrupted(
          fmt::format("{} is at step {}; --resume continues", options_.output, trainer().done()));
    };
    const std::exception_ptr failed = caught([&] {
      run_steps(trainer(), loop, ranks_);
      if (ranks_.is_first() && log_.has_only_empty_steps()) {
        throw InputError(options_.output,
                         "no token was predicted in any step, so the model is as it began: "
                         "expected longer texts or a higher rate");
      }
    });
    if (failed) end_failed(failed);
    if (plan_.time_budget)
      session_.note(
          fmt::format("to reproduce this exact run: --steps @{}, the plan {} in its folder",
                      options_.output, shown_plan(plan_text())));
  }

 private:
  train::Trainer& trainer() { return run_.trainer(); }
  std::int64_t steps() { return trainer().steps(); }
  std::string plan_text() { return trainer().options().schedule.plan().text(); }
  double spent() const { return plan_.spent + seconds_since(begin_); }

  /// After the step that is done, what metrics.jsonl has not yet.
  void evaluate_if_due() {
    const std::int64_t done = trainer().done();
    if ((done == 0 && steps() > 0) || !ranks_.is_first()) return;
    if (done != steps() && (options_.eval_every == 0 || done % options_.eval_every != 0)) return;
    if (eval_ && !log_.has_evaluation(done))
      log_.evaluation(done, run_.evaluate(*eval_, options_.eval_sequences));
    if (run_.has_never_selected() && !log_.has_never_selected(done))
      log_.never_selected(done, run_.evaluate_never_selected(options_.eval_sequences));
  }

  /// Of a run that an error ended nothing stays that looks like a trained model; rethrows the
  /// error.
  [[noreturn]] void end_failed(const std::exception_ptr& failed) {
    if (ranks_.is_first() && !is_unfinished(failed)) {
      if (began_here_ && saved_step_ == 0) {
        remove_tree(open_folder(folder_of(options_.output)).get(), base_name(options_.output));
      } else {
        session_.note(fmt::format("{} has the model of step {}", options_.output, saved_step_));
      }
    }
    std::rethrow_exception(failed);
  }

  /// Asks the time budget, with the clock of the first rank.
  void keep_time() {
    if (!plan_.time_budget) return;
    const std::int64_t done = trainer().done();
    double requested = 0;
    if (ranks_.is_first()) {
      plan_.time_budget->reserve(save_seconds_ + evaluation_seconds());
      if (const auto changed = plan_.time_budget->replan(done, steps(), spent()))
        requested = static_cast<double>(*changed);
    }
    requested = of_first(ranks_, requested);
    if (requested > 0) run_.set_steps(static_cast<std::int64_t>(requested));
  }

  /// What the evaluation after the last step may take.
  double evaluation_seconds() const {
    const double speed = log_.tokens_per_second() / ranks_.count();
    double tokens = 0;
    const auto add = [&](const train::Corpus& corpus) {
      const double share = static_cast<double>(options_.eval_sequences) /
                           static_cast<double>(std::max<Index>(corpus.size(), 1));
      tokens += static_cast<double>(corpus.tokens()) * std::min(1.0, share);
    };
    if (eval_) add(*eval_);
    if (run_.has_never_selected()) add(run_.corpus());
    return speed > 0 ? kForwardShare * tokens / speed : 0;
  }

  void save() {
    const auto start = Clock::now();
    std::optional<ScratchFile> moments;
    if (trainer().shards()) moments = train::gather_moments(trainer(), options_.output);
    if (!ranks_.is_first()) return;
    train::RunFiles files{*log_.metrics(), log_.picture(), {}};
    if (moments) files.moments = &*moments;
    if (plan_.time_budget && trainer().done() < steps()) files.spent_seconds = spent();
    run_.save(options_.output, saved_, files);
    began_here_ = began_here_ || !saved_;
    saved_ = true;
    saved_step_ = trainer().done();
    save_seconds_ = seconds_since(start);
  }

  const TrainOptions& options_;
  train::TrainingRun& run_;
  const std::optional<train::Corpus>& eval_;
  Plan plan_;
  train::Ranks& ranks_;
  Clock::time_point begin_;
  cli::Session& session_;
  Log log_;
  double save_seconds_ = 0;
  bool saved_ = false;
  bool began_here_ = false;      ///< this process made the folder
  std::int64_t saved_step_ = 0;  ///< of the checkpoint in the folder
};

[[noreturn]] void refuse_taken(const TrainOptions& o) {
  if (!is_folder(o.output)) throw InputError(o.output, "is a file, expected a new folder");
  throw InputError(
      o.output, o.resume ? "folder exists, but has no training.safetensors of a run: choose another"
                         : "folder exists: choose another or use --resume");
}

}  // namespace

void check_format(const TrainOptions& o) {
  const train::CorpusOptions reading = corpus_options(o);
  if (o.text == "-" && o.eval_text == "-") {
    throw UsageError(fmt::format("{} -: standard input is already the training text; use a file",
                                 field("eval")));
  }
  const auto expect = [&](std::string_view format) {
    throw UsageError(fmt::format("{} {}: needs {} {}", field("objective"), o.objective,
                                 field("format"), format));
  };
  if (o.field && reading.format != train::CorpusFormat::kLines &&
      reading.format != train::CorpusFormat::kBlocks) {
    throw UsageError(fmt::format("{}: expected {} lines or blocks, not {}", field("field"),
                                 field("format"), o.format));
  }
  if (reading.labels && reading.format != train::CorpusFormat::kRecords) expect("records");
  if (reading.corrections && reading.format != train::CorpusFormat::kPairs) expect("pairs");
  // Blocks begin anywhere, not with the token that has the bottlenecks.
  if (o.objective == "univae" && reading.format == train::CorpusFormat::kBlocks) expect("lines");
}

namespace {

/// Bottlenecks stand at the token that the tokenizer puts in front of a text.
void check_univae(const text::Tokenizer& tokenizer) {
  const text::TemplateTokens around = text::template_tokens(tokenizer, 1);
  if (around.before.empty() || around.after.empty()) {
    throw InputError(
        fmt::format("{} univae: needs a tokenizer that adds tokens before and after a text",
                    field("objective")));
  }
}

/// Records of which tokens were dropped before choose which; then a share to drop has no effect.
void check_dropped(const TrainOptions& o, const train::Corpus& corpus) {
  if (corpus.labels() != train::LabelKind::kHidden) return;
  if (!o.ratio_requested && (!o.drop.min_keep || o.drop.rate)) return;
  throw UsageError(fmt::format("{} has no effect with records that have dropped tokens; remove it",
                               field(o.ratio_requested ? "mae_ratio" : "min_keep")));
}

/// What is trained on what, and how it starts.
void note_start(const train::TrainingRun& run, int processes, cli::Session& session) {
  const std::string trained = run.trained_count() < run.parameter_count()
                                  ? fmt::format(", {} of them trained", run.trained_count())
                                  : "";
  session.note(fmt::format("{}, {} parameters{}; {} sequences, {} tokens{}", run.family(),
                           run.parameter_count(), trained, run.corpus().size(),
                           run.corpus().tokens(),
                           processes > 1 ? fmt::format("; {} processes", processes) : ""));
  for (const std::string& name : run.new_tensors())
    session.note(fmt::format("{}: not in the checkpoint, initialized", name));
  for (const std::string& note : run.start_notes()) session.note(note);
}

}  // namespace

cli::ExitCode run_train(const TrainOptions& given, cli::Session& session) {
  TrainOptions o = given;
  const auto begin = Clock::now();
  train::Ranks& ranks = o.launch->ranks();
  cli::CommonOptions common = o.common;
  common.quiet = common.quiet || !ranks.is_first();
  session.configure(common);
  train::CorpusOptions reading = corpus_options(o);
  check_format(o);
  kernel::set_threads(o.common.threads);
  check_timing(o.timing, o.output);
  if (ranks.count() > 1 && o.text == "-")
    throw UsageError("several processes cannot share standard input; use a file");
  // Of two processes with the same command one goes on.
  std::optional<WorkLock> lock;
  if (ranks.is_first()) {
    lock.emplace(o.output);
    restore_folder(o.output);
  }
  any(ranks, false);  // only then the others look
  const bool goes_on = o.resume && train::TrainingRun::has_state(o.output);
  if (!goes_on && is_taken(o.output)) refuse_taken(o);
  if (o.init) o.start = std::make_shared<const model::StartingModel>(*o.init);
  if (o.init_generator)
    o.generator_start = std::make_shared<const model::StartingModel>(*o.init_generator);
  for (const auto& start : {o.start, o.generator_start}) {
    if (start) commands::note_model(start->path(), start->design(), session);
  }
  const text::Tokenizer tokenizer =
      text::Tokenizer::open(o.tokenizer ? *o.tokenizer : *o.init, {.model = o.init.value_or("")});
  for (const std::string& warning : tokenizer.warnings()) session.note(warning);
  if (o.start) {
    check_vocabulary(tokenizer, o.tokenizer.value_or(*o.init), *o.start);
    reading.positions = commands::position_rule(o.start->design());
  }
  const records::SimilarTokens similar = similar_of(o, tokenizer, session);
  if (o.objective == "univae") check_univae(tokenizer);
  // What a causal model reads in front of a line, where the template has nothing.
  if (o.objective == "clm") reading.begin = probe::begin_token(tokenizer);
  train::Corpus corpus = train::read_corpus(o.text, tokenizer, reading);
  check_dropped(o, corpus);
  // As of plm: a query stream sees no positions of the input.
  const model::Streams streams = o.streams.value_or(train::record_needs(corpus).streams);
  if (reading.labels && !o.position && !o.init && streams == model::Streams::kTwo)
    o.position = "rope";
  std::optional<train::Corpus> eval;
  if (o.eval_text) eval = train::read_corpus(*o.eval_text, tokenizer, reading);
  note_lines(corpus, session);
  if (eval) note_lines(*eval, session);
  Plan plan = make_plan(o, similar, tokenizer, corpus, goes_on, ranks, session,
                        [&] { return seconds_since(begin); });
  const auto planned = goes_on ? take_other_steps(o, plan) : train::PlannedSteps::kSame;
  if (o.switch_step && *o.switch_step >= plan.steps.steps()) {
    throw UsageError(fmt::format("{} {}: expected fewer than the {} steps of the run",
                                 field("switch"), *o.switch_step, plan.steps.steps()));
  }
  train::TrainingRun run(run_options(o, similar, plan.steps), tokenizer, std::move(corpus), ranks);
  note_start(run, ranks.count(), session);
  if (o.range_requested && !run.reads_initializer_range()) {
    throw UsageError(
        fmt::format("{} has no effect with {} {}: no parameter is initialized; remove it",
                    field("initializer_range"), field("init"), *o.init));
  }
  if (eval) run.check(*eval);
  Loop loop(o, run, eval, std::move(plan), begin, session);
  if (goes_on) {
    loop.go_on(planned);
  } else {
    run.check_leak();
    if (o.init_moments) {
      for (const std::string& note : run.take_moments()) session.note(note);
    }
  }
  const bool was_done = goes_on && run.trainer().done() == run.trainer().steps();
  loop.all();
  if (was_done && !eval) return cli::ExitCode::kDone;
  const std::string loads = run.transformers_class();
  session.note(loads.empty()
                   ? fmt::format("{}: written; transformers does not have this design{}", o.output,
                                 run.transformers_hint())
                   : fmt::format("{}: written; transformers loads it as {}", o.output, loads));
  return cli::ExitCode::kDone;
}

}  // namespace masque::lm_train
