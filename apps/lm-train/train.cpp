// The loop of a training run: steps, what is reported of them, checkpoints.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <exception>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/file/output_folder.hpp"
#include "base/file/scratch_file.hpp"
#include "base/json/json_writer.hpp"
#include "base/string/comma_list.hpp"
#include "base/string/parse_number.hpp"
#include "base/thread/parallel.hpp"
#include "base/thread/shortage.hpp"
#include "budget.hpp"
#include "commands/corpus_notes.hpp"
#include "commands/model_notes.hpp"
#include "commands/sequences.hpp"
#include "draw/chart.hpp"
#include "draw/svg.hpp"
#include "evaluate/score/sentence.hpp"
#include "kernel/parallel.hpp"
#include "kernel/product/trained_linear.hpp"
#include "metrics.hpp"
#include "records/token_folder.hpp"
#include "store/config.hpp"
#include "text/tokenizer.hpp"
#include "timing.hpp"
#include "train/run/folder_parts.hpp"
#include "train/run/trainer_state.hpp"
#include "train/run/training_loop.hpp"
#include "train_options.hpp"

namespace masque::lm_train {

namespace {

// What a run reports while it goes on: a line of progress, metrics, the curve of the loss.

class Log {
 public:
  /// All references must stay. Throws InputError if nothing can be written where the run will be.
  Log(const TrainOptions& options, train::TrainingRun& run, cli::Session& session);

  /// Of the first rank alone.
  const std::optional<ScratchFile>& metrics() const { return metrics_; }
  /// Begins with what an earlier process of the run wrote to `path`. Throws InputError.
  void go_on(const std::string& path);
  /// Whether metrics() has such a line of a step.
  bool has_evaluation(std::int64_t step) const { return evaluated_ == step; }
  bool has_never_selected(std::int64_t step) const { return never_selected_ == step; }

  void step(const train::StepReport& report, std::int64_t steps);
  void evaluation(std::int64_t step, const train::StepLosses& losses);
  void never_selected(std::int64_t step, const train::LossReport& report);

  /// Whether this process made steps, and no step of the run had anything to predict.
  bool has_only_empty_steps() const { return own_steps_ > 0 && !has_loss_; }
  /// An SVG of all steps that have a loss, and of the held-out losses if there are any.
  std::string picture() const;
  /// Of all ranks together; 0 before the first step.
  double tokens_per_second() const;

 private:
  void add_line(const MetricsLine& line);
  void add_loss(std::int64_t step, double loss);
  void append(const std::string& line);
  std::string line(std::int64_t step, std::int64_t steps);
  double seconds() const;

  const TrainOptions& options_;
  train::TrainingRun& run_;
  cli::Session& session_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  LossCurve curve_;
  bool has_loss_ = false;
  LossCurve held_out_;         ///< of evaluations
  std::deque<double> recent_;  ///< losses of the last steps, as many as a report is about
  std::int64_t own_steps_ = 0;
  double tokens_ = 0, operations_ = 0;
  double peak_ = 0;  ///< operations a second of all ranks; 0: not measured, as nobody sees it
  std::int64_t evaluated_ = -1, never_selected_ = -1;  ///< the last steps with such a line
  std::optional<ScratchFile> metrics_;
  Timing timing_;  ///< of the first rank alone
};

using Clock = std::chrono::steady_clock;

// Lines that report the loss where no terminal shows it all the time.
constexpr std::int64_t kReports = 20;

/// Steps between two reports, and what each is about.
std::int64_t report_every(std::int64_t steps) {
  return std::max<std::int64_t>(1, steps / kReports);
}

// Discriminators of small models that had learned nothing had areas up to 0.56
// (scripts/experiments/results/README.md).
constexpr double kDetectsNothing = 0.6;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Means of what may have no rows: then they are no number.
double mean_of(const train::LossReport& r) { return r.weight > 0 ? r.mean() : kNone; }
double accuracy_of(const train::LossReport& r) { return r.rows > 0 ? r.accuracy() : kNone; }

double mean_of(const train::StepLosses& losses) {
  const auto counts = [](const train::LossPart& p) { return p.factor != 0 && p.report.weight > 0; };
  return std::ranges::any_of(losses.parts, counts) ? losses.mean() : kNone;
}

double accuracy_of(const train::StepLosses& losses) {
  return losses.parts.empty() ? kNone : accuracy_of(losses.parts.back().report);
}

/// For people: a line of "loss 1.2345".
std::string shown(double value) {
  return std::isfinite(value) ? fmt::format("{:.4f}", value) : "-";
}

/// Of several networks each one's loss and accuracy, and what else was counted.
void add_parts(const train::StepLosses& losses, std::string_view prefix, JsonWriter& json) {
  const auto add = [&](std::string_view name, std::string_view measure, double value) {
    json.member(fmt::format("{}{}{}", prefix, name, measure), value);
  };
  for (const train::LossPart& part : losses.parts) {
    const train::LossReport& report = part.report;
    for (std::size_t k = 0; report.sequences > 0 && k < train::kDiversities; ++k) {
      add("diversity_", train::kDiversityNames[k],
          report.diversity[k] / static_cast<double>(report.sequences));
    }
    if (report.coded > 0)
      add("divergence", "", report.divergence / static_cast<double>(report.coded));
    if (part.name.empty()) continue;
    add(part.name, part.judged ? "_loss" : "", mean_of(report));
    if (part.judged) add(part.name, "_accuracy", accuracy_of(report));
  }
  if (!losses.detections.empty()) add("discriminator", "_auc", losses.detections.area());
  for (const train::Share& share : losses.shares)
    add(share.name, "", static_cast<double>(share.count) / static_cast<double>(share.of));
}

Log::Log(const TrainOptions& options, train::TrainingRun& run, cli::Session& session)
    : options_(options), run_(run), session_(session) {
  if (session.shows_progress())
    peak_ = kernel::measure_product(options.precision) * options.launch->ranks().count();
  if (options.launch->ranks().is_first()) {
    metrics_.emplace(options.output);
    timing_ = Timing(options.timing, options.resume);
  }
  begin_ = Clock::now();
}

double Log::seconds() const { return std::max(seconds_since(begin_), 1e-9); }

double Log::tokens_per_second() const { return tokens_ / seconds(); }

void Log::add_line(const MetricsLine& line) {
  if (line.loss) add_loss(line.step, *line.loss);
  if (line.evaluation) {
    evaluated_ = line.step;
    held_out_.add(line.step, line.eval_loss);
  }
  if (line.never_selected) never_selected_ = line.step;
}

void Log::go_on(const std::string& path) {
  for_each_metrics_line(
      path, [this](const MetricsLine& line) { add_line(line); },
      [this](std::string_view text) {
        if (metrics_) metrics_->append(text);
      });
}

void Log::add_loss(std::int64_t step, double loss) {
  curve_.add(step, loss);
  has_loss_ = has_loss_ || std::isfinite(loss);
  recent_.push_back(loss);
  const std::int64_t kept = report_every(run_.trainer().steps());
  while (std::ssize(recent_) > kept) recent_.pop_front();
}

void Log::append(const std::string& line) {
  if (metrics_) metrics_->append(line + '\n');
}

std::string Log::line(std::int64_t step, std::int64_t steps) {
  MeanLoss mean;
  for (const double loss : recent_) mean.add(loss);
  const double a_step = seconds() / static_cast<double>(own_steps_);
  const std::string share = operations_ > 0 ? fmt::format(" ({:.0f} % of the peak)",
                                                          100 * operations_ / seconds() / peak_)
                                            : "";
  return fmt::format("step {} of {}: loss {}, {:.0f} tokens/s{}, {:.0f} s left", step, steps,
                     shown(mean.value()), tokens_per_second(), share,
                     a_step * static_cast<double>(steps - step));
}

void Log::step(const train::StepReport& r, std::int64_t steps) {
  const double loss = mean_of(r.loss);
  add_loss(r.step, loss);
  ++own_steps_;
  tokens_ += static_cast<double>(r.tokens);
  if (peak_ > 0) operations_ += run_.operations(r);
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", r.step).member("loss", loss);
  json.member("accuracy", accuracy_of(r.loss)).member("learning_rate", r.learning_rate);
  json.member("gradient_norm", r.gradient_norm).member("tokens", r.tokens);
  add_parts(r.loss, "", json);
  json.end_object();
  append(text);
  timing_.add(r);
  if (session_.shows_progress()) {
    session_.status([&] { return line(r.step, steps); });
    if (r.step != steps) return;
  }
  if (r.step % report_every(steps) == 0 || r.step == steps) session_.note(line(r.step, steps));
}

void Log::evaluation(std::int64_t step, const train::StepLosses& r) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", step).member("eval_loss", mean_of(r));
  json.member("eval_accuracy", accuracy_of(r)).member("eval_rows", r.rows());
  add_parts(r, "eval_", json);
  json.end_object();
  append(text);
  evaluated_ = step;
  held_out_.add(step, mean_of(r));
  const double area = r.detections.area();
  session_.note(fmt::format("step {}: eval loss {}, accuracy {}{} on {} tokens", step,
                            shown(mean_of(r)), shown(accuracy_of(r)),
                            r.detections.empty() ? "" : fmt::format(", AUC {}", shown(area)),
                            r.rows()));
  if (step == run_.trainer().steps() && area < kDetectsNothing) {
    session_.note(fmt::format(
        "the discriminator hardly distinguishes replaced tokens (AUC {}, 0.5 is chance), "
        "whatever its accuracy; with a smaller {} it may learn more",
        shown(area), field("learning_rate")));
  }
}

void Log::never_selected(std::int64_t step, const train::LossReport& r) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("step", step).member("never_selected_loss", mean_of(r));
  json.member("never_selected_accuracy", accuracy_of(r)).member("never_selected_rows", r.rows);
  json.end_object();
  append(text);
  never_selected_ = step;
  session_.note(fmt::format("step {}: loss {} and accuracy {} on positions without a training loss",
                            step, shown(mean_of(r)), shown(accuracy_of(r))));
}

std::string Log::picture() const {
  draw::Chart chart;
  chart.title = fmt::format("{}: loss", options_.objective);
  chart.x.name = "step";
  chart.y.name = "nats per token";
  const draw::Curve held_out = held_out_.curve("held-out text");
  chart.curves.push_back(curve_.curve(held_out.x.empty() ? "loss" : "training batches"));
  if (!held_out.x.empty()) chart.curves.push_back(held_out);
  return draw::svg(chart);
}

// The loop.

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
  options.policy = o.policy;
  const train::ObjectiveTraits& traits = train::objective_traits(o.objective);
  options.labels = traits.reads_labels;
  options.dropped = traits.reads_dropped;
  options.corrections = traits.reads_corrections;
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
    loop.end = [this] { say_what_stays(); };
    bool has_learned = true;
    const std::exception_ptr failed = caught([&] {
      if (began_here_) run_.check_saved(options_.output);
      run_steps(trainer(), loop, ranks_);
      has_learned = !log_.has_only_empty_steps();
      if (ranks_.is_first() && !has_learned) {
        throw InputError(options_.output,
                         "no token was predicted in any step, so the model is as it began: "
                         "expected longer texts or a higher rate");
      }
    });
    if (failed) end_failed(failed, has_learned);
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

  void say_what_stays() {
    session_.say_if_interrupted(
        fmt::format("{} is at step {}; --resume continues", options_.output, trainer().done()));
  }

  /// Of a run that an error ended nothing stays that looks like a trained model, nor of one that
  /// has not learned anything; rethrows the error.
  [[noreturn]] void end_failed(const std::exception_ptr& failed, bool has_learned) {
    if (ranks_.is_first() && !is_unfinished(failed)) {
      if (began_here_ && (saved_step_ == 0 || !has_learned)) {
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
    say_what_stays();
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
  if (train::objective_traits(o.objective).reads_sources &&
      reading.format != train::CorpusFormat::kPairs &&
      reading.format != train::CorpusFormat::kRecords)
    expect("pairs");
  // Blocks begin anywhere, not with the token that has the bottlenecks.
  if (train::objective_traits(o.objective).latent && reading.format == train::CorpusFormat::kBlocks)
    expect("lines");
}

namespace {

/// Latent bottlenecks stand at the token that the tokenizer puts in front of a text.
void check_latent(const std::string& objective, const text::Tokenizer& tokenizer) {
  const text::TemplateTokens around = text::template_tokens(tokenizer, 1);
  if (around.before.empty() || around.after.empty()) {
    throw InputError(
        fmt::format("{} {}: needs a tokenizer that adds tokens before and after a text",
                    field("objective"), objective));
  }
}

/// "ids:N,…" with the special tokens of the config.json of `start`.
std::string ids_of(const model::StartingModel& start) {
  std::string name = fmt::format("ids:{}", start.design().vocab_size);
  const auto config = store::ModelConfig::find(start.path());
  for (const auto& field : text::kRoleFields) {
    const std::string key = fmt::format("{}_token_id", field.first);
    // eos_token_id may be a list.
    const auto id = config ? parse_number<TokenId>(config->spelling(key)) : std::nullopt;
    if (id && *id >= 0) name += fmt::format(",{}={}", field.first, *id);
  }
  return name;
}

/// Whether the training text is of ids alone.
bool holds_ids(const TrainOptions& o) {
  return o.format == "records" ||
         (o.text != "-" && (records::is_token_folder(o.text) || records::is_token_file(o.text)));
}

/// The tokenizer of `o`; where the model of --init has none, and the training text is of ids, that
/// of its ids.
text::Tokenizer open_tokenizer(const TrainOptions& o, cli::Session& session) {
  if (!o.tokenizer && holds_ids(o) && !text::has_tokenizer(*o.init)) {
    const std::string ids = ids_of(*o.start);
    session.note(fmt::format("{}: no tokenizer; {} {}", *o.init, field("tokenizer"), ids));
    return text::Tokenizer::open(ids);
  }
  return text::Tokenizer::open(o.tokenizer ? *o.tokenizer : *o.init,
                               {.model = o.init.value_or("")});
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
  const train::ObjectiveTraits& traits = train::objective_traits(o.objective);
  if (o.init) {
    o.start = std::make_shared<const model::StartingModel>(
        *o.init,
        traits.reads_sources ? model::StartingPart::kDecoder : model::StartingPart::kModel);
  }
  if (o.init_generator)
    o.generator_start = std::make_shared<const model::StartingModel>(*o.init_generator);
  for (const auto& start : {o.start, o.generator_start}) {
    if (start) commands::note_model(start->path(), start->design(), session);
  }
  const text::Tokenizer tokenizer = open_tokenizer(o, session);
  session.notes(tokenizer.parts().path, tokenizer.warnings());
  if (o.start) {
    check_vocabulary(tokenizer, o.tokenizer.value_or(*o.init), *o.start);
    reading.positions = commands::position_rule(o.start->design());
    if (traits.reads_sources) reading.source = o.start->design().source;
  }
  const records::SimilarTokens similar = similar_of(o, tokenizer, session);
  if (traits.latent) check_latent(o.objective, tokenizer);
  // What a causal model reads in front of a line, where the template has nothing.
  if (traits.predicts_first) reading.begin = evaluate::begin_token(tokenizer);
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
  if (eval && eval->size() > o.eval_sequences) {
    session.note(limit_note(eval->source(), o.eval_sequences, eval->size(),
                            "sequences are evaluated", "eval_sequences"));
  }
  Plan plan = make_plan(o, similar, tokenizer, corpus, goes_on, ranks, session,
                        [&] { return seconds_since(begin); });
  const auto planned = goes_on ? take_other_steps(o, plan) : train::PlannedSteps::kSame;
  if (o.switch_step && *o.switch_step >= plan.steps.steps()) {
    throw UsageError(fmt::format("{} {}: expected fewer than the {} steps of the run",
                                 field("switch"), *o.switch_step, plan.steps.steps()));
  }
  // Too large for the stack.
  const auto held = std::make_unique<train::TrainingRun>(run_options(o, similar, plan.steps),
                                                         tokenizer, std::move(corpus), ranks);
  train::TrainingRun& run = *held;
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
