// lm-train classify: an encoder learns the labels of texts, once for each seed.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/digest_line.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json_writer.hpp"
#include "base/output_folder.hpp"
#include "base/work_lock.hpp"
#include "classify_data.hpp"
#include "classify_options.hpp"
#include "classify_results.hpp"
#include "kernel/parallel.hpp"
#include "text/tokenizer_digest.hpp"
#include "timing.hpp"
#include "train/classify/classify_run.hpp"
#include "train/run/training_loop.hpp"

namespace masque::lm_train {

namespace {

constexpr std::int64_t kTimesReported = 10;  // times that the loss is reported

/// Updates of one seed; returns metrics.jsonl.
std::string learn(train::ClassifyRun& run, train::ProblemType problem, std::int64_t steps,
                  const std::string& what, Timing& timing, train::Ranks& ranks,
                  cli::Session& session) {
  std::string metrics;
  const std::int64_t every = std::max<std::int64_t>(1, steps / kTimesReported);
  double sum = 0;
  train::TrainingLoop loop;
  loop.report = [&](const train::StepReport& r) {
    JsonWriter json(metrics);
    json.begin_object().member("step", r.step).member("loss", r.loss.mean());
    if (problem == train::ProblemType::kSingleLabel) json.member("accuracy", r.loss.accuracy());
    json.member("learning_rate", r.learning_rate);
    json.member("gradient_norm", r.gradient_norm).end_object();
    metrics += '\n';
    timing.add(r);
    sum += r.loss.mean();
    if (r.step % every != 0) return;
    session.note(fmt::format("{}step {} of {}: loss {:.4f}", what, r.step, steps,
                             sum / static_cast<double>(every)));
    sum = 0;
  };
  train::run_steps(run.trainer(), loop, ranks);
  return metrics;
}

/// Throws InputError if nothing can be written there, before hours of work.
void check_output(const ClassifyCommand& o) {
  if (!o.output) return;
  if (!is_taken(*o.output)) {
    const OutputFolder trial(*o.output, Existing::kRefuse);
    return;
  }
  if (!is_folder(*o.output)) throw InputError(*o.output, "is a file, expected a new folder");
  if (!o.resume) throw InputError(*o.output, "folder exists: choose another or use --resume");
  // One that is empty was made, and then the run was killed or the power lost.
  if (o.seeds > 1 && !exists(join(*o.output, "results.tsv")) && !list_files(*o.output).empty())
    throw InputError(*o.output,
                     "folder exists, but has no results.tsv of several seeds: choose another");
}

/// The folder of several seeds, with a table that is still empty.
void start_folder(const ClassifyCommand& o, const Results& results, cli::Session& session) {
  if (!o.output || o.seeds == 1) return;
  if (!exists(join(*o.output, "results.tsv"))) {
    make_folder(*o.output);
    results.keep();
  }
  session.say_if_interrupted(
      fmt::format("{} keeps the finished seeds; --resume continues", *o.output));
}

/// Everything that decides the bytes of a seed's folder.
Settings settings_of(const ClassifyData& all, const train::RunOptions& given,
                     train::ClassifyRun& run) {
  Settings settings = given.settings;
  for (auto& fact : run.facts()) settings.push_back(std::move(fact));
  settings.emplace_back("vocabulary", text::tokenizer_digest(all.tokenizer));
  settings.emplace_back("judged", train::digest_of(all.judged().texts));
  return settings;
}

}  // namespace

cli::ExitCode run_classify(const ClassifyCommand& o, cli::Session& session) {
  train::Ranks& ranks = o.launch->ranks();
  cli::CommonOptions common = o.common;
  common.quiet = common.quiet || !ranks.is_first();
  session.configure(common);
  check_classify(o);
  kernel::set_threads(o.common.threads);
  if (ranks.count() > 1 && (o.text == "-" || o.eval_data == "-"))
    throw UsageError("several processes cannot share standard input; use a file");
  std::optional<WorkLock> lock;
  if (ranks.is_first() && o.output) lock.emplace(*o.output);
  check_timing(o.timing, o.output);
  if (ranks.is_first()) check_output(o);
  ClassifyData all{.tokenizer = text::Tokenizer::open(o.tokenizer ? *o.tokenizer : *o.model,
                                                      {.model = o.model.value_or("")})};
  open_data(o, all, session);
  // Its first line is printed at once: not before all that can be refused has been looked at.
  std::optional<Results> table;
  Timing timing(ranks.is_first() ? o.timing : std::nullopt, o.resume);
  for (std::int64_t k = 0; k < o.seeds; ++k) {
    const std::uint64_t seed = o.common.seed + static_cast<std::uint64_t>(k);
    const train::RunOptions given = classify_options(o, all.steps, seed);
    const train::ClassifyOptions options{.pooling = all.pooling,
                                         .texts = {.mask = all.mask,
                                                   .drop = given.requested.drop,
                                                   .seed = seed,
                                                   .tokens = train::token_table(all.tokenizer)},
                                         .trained = given.trained,
                                         .trainer = given.trainer,
                                         .precision = given.precision,
                                         .initializer_range = given.initializer_range,
                                         .chunk_rows = given.chunk_rows};
    train::ClassifyRun run(all.start, options, all.names, all.train.texts, ranks);
    if (k == 0) {
      run.check(all.judged().texts);
      const std::string trained = run.trained_count() < run.parameter_count()
                                      ? fmt::format(" ({} trained)", run.trained_count())
                                      : "";
      const std::string what = o.problem == train::ProblemType::kRegression
                                   ? "regression"
                                   : fmt::format("{} labels", all.names.size());
      session.note(fmt::format("{}, {} texts, {} parameters{}, {} steps", what,
                               all.train.read.corpus.size(), run.parameter_count(), trained,
                               all.steps));
    }
    const std::string folder = o.seeds > 1 && o.output
                                   ? join(*o.output, fmt::format("seed-{}", seed))
                                   : o.output.value_or("");
    const Settings settings = settings_of(all, given, run);
    train::check_alike(ranks, "texts, labels, vocabulary and options",
                       record_text(settings, o.problem, {}));
    // The first process alone prints and writes.
    const auto kept =
        o.resume && ranks.is_first() ? find_record(folder, settings, o.problem) : std::nullopt;
    if (!table && ranks.is_first()) start_folder(o, table.emplace(o, session), session);
    if (any(ranks, kept.has_value())) {
      session.note(fmt::format("{}: finished, reused", folder));
      if (kept) table->add(seed, *kept);
      continue;
    }
    const std::string metrics =
        learn(run, o.problem, all.steps, o.seeds > 1 ? fmt::format("seed {}: ", seed) : "", timing,
              ranks, session);
    if (!ranks.is_first()) continue;
    const train::Classified found = run.classify(all.judged().texts);
    const SeedResult result = result_of(found);
    table->add(seed, result);
    if (!o.output) continue;
    run.save(folder, all.tokenizer,
             {{"metrics.jsonl", metrics},
              {"predictions.tsv", predictions(found, all.names)},
              {"result.json", with_digest_member(record_text(settings, o.problem, result))}});
    if (o.seeds == 1) session.say_if_interrupted(fmt::format("{}: written", folder));
    table->keep();
  }
  if (table) table->finish();
  return cli::ExitCode::kDone;
}

}  // namespace masque::lm_train
