// lm-train classify: an encoder learns the labels of texts, once for each seed.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/file/output_folder.hpp"
#include "base/input/digest_line.hpp"
#include "base/json/json_writer.hpp"
#include "base/thread/parallel.hpp"
#include "classify_options.hpp"
#include "classify_results.hpp"
#include "commands/corpus_notes.hpp"
#include "commands/model_notes.hpp"
#include "exchange/read_masks.hpp"
#include "kernel/parallel.hpp"
#include "mask/expression.hpp"
#include "model/checkpoint/training_state.hpp"
#include "model/masks.hpp"
#include "surgery/convert/convert_checkpoint.hpp"
#include "text/tokenizer.hpp"
#include "timing.hpp"
#include "train/classify/classify_run.hpp"
#include "train/run/kept_files.hpp"
#include "train/run/starting_design.hpp"
#include "train/run/training_loop.hpp"

namespace masque::lm_train {

namespace {

// What all seeds of lm-train classify share: the start, the texts, their labels.

/// A file of texts whose labels are numbered.
struct LabelledData {
  train::LabelledCorpus read;
  train::LabelledTexts texts;  ///< points at `read`
};

struct ClassifyData {
  text::Tokenizer tokenizer;
  train::ClassifierStart start = {};
  std::vector<std::string> names = {};  ///< of the labels
  LabelledData train = {};
  std::optional<LabelledData> eval = {};
  std::int64_t steps = 0;
  train::ClassifierPooling pooling = train::ClassifierPooling::kFirst;
  std::optional<std::string> mask = {};  ///< in place of the model's

  /// The texts that the results are of.
  const LabelledData& judged() const { return eval ? *eval : train; }
};

Index choose_length(const ClassifyCommand& o, const train::ClassifierStart& start) {
  constexpr Index kUsual = 128;
  const Index most = model::longest_trained(start.design);
  if (!o.length) return most > 0 ? std::min(kUsual, most) : kUsual;
  if (most == 0 || *o.length <= most) return *o.length;
  throw UsageError(fmt::format("{} {}: expected at most {}, the positions of the model{}",
                               field("length"), *o.length, most,
                               model::trained_part(start.design)));
}

train::ClassifierStart open_start(const ClassifyCommand& o, const text::Tokenizer& tokenizer) {
  const auto tokens = static_cast<Index>(tokenizer.size());
  if (!o.model) {
    train::DesignRecipe recipe = classify_options(o, 1, o.common.seed).design;
    recipe.vocab_size = tokens;
    recipe.max_position_embeddings = o.length.value_or(128);
    train::ClassifierStart start = train::start_of(recipe, tokenizer);
    train::check_token_types(tokenizer, start.design);
    return start;
  }
  train::ClassifierStart start = train::start_of(*o.model, o.mask == "full");
  if (start.problem != o.problem) start.names.clear();
  if (tokens > start.design.vocab_size) {
    throw InputError(
        tokenizer.parts().path,
        fmt::format("the tokenizer has {} tokens, expected at most {}, the vocabulary of the model",
                    tokens, start.design.vocab_size));
  }
  train::check_token_types(tokenizer, start.design);
  return start;
}

std::int64_t choose_steps(const ClassifyCommand& o, Index texts) {
  if (o.steps) return *o.steps;
  const double batches = std::ceil(static_cast<double>(texts) / static_cast<double>(o.batch_size));
  if (o.epochs == 0) return 0;
  return std::max<std::int64_t>(1, std::llround(o.epochs.value_or(3) * batches));
}

/// Hugging Face writes LABEL_0, LABEL_1, … where nobody named the labels: they become numbers, if
/// the texts have such.
void name_by_number(const train::LabelledCorpus& texts, train::ClassifierStart& start) {
  std::vector<std::string> numbers;
  numbers.reserve(start.names.size());
  for (std::size_t i = 0; i < start.names.size(); ++i) {
    if (start.names[i] != fmt::format("LABEL_{}", i)) return;
    numbers.push_back(fmt::format("{}", i));
  }
  const auto is_known = [&](const std::string& label) {
    return std::ranges::find(numbers, label) != numbers.end();
  };
  if (std::ranges::all_of(texts.labels, is_known)) start.names = numbers;
}

/// Those of the model, if it knows all labels of the texts; else those of the texts.
std::vector<std::string> choose_names(const ClassifyCommand& o, const train::ClassifierStart& start,
                                      const train::LabelledCorpus& texts, cli::Session& session) {
  const auto is_known = [&](const std::string& label) {
    return std::ranges::find(start.names, label) != start.names.end();
  };
  const auto unknown = std::ranges::find_if_not(texts.labels, is_known);
  if (!start.names.empty() && unknown == texts.labels.end()) {
    session.note(fmt::format("{}: continues with its {} labels", *o.model, start.names.size()));
    return start.names;
  }
  if (o.epochs == 0 && start.problem == train::ProblemType::kRegression) {
    throw InputError(*o.model, fmt::format("the model is one of regression, expected {} regression",
                                           field("problem_type")));
  }
  const std::string known = escape(fmt::format("{}", fmt::join(start.names, ", ")));
  if (o.epochs == 0) {
    throw InputError(
        *o.model, start.names.empty()
                      ? "the model has no labels; --epochs 0 needs a trained classifier"
                      : fmt::format("the labels of the model are {}; --epochs 0 needs texts with "
                                    "these labels",
                                    known));
  }
  if (!start.names.empty()) {
    session.note(fmt::format(
        "{}: its labels are {}, but the texts have '{}'; the label layer is initialized", *o.model,
        known, escape(*unknown)));
  }
  return train::label_names(texts);
}

/// Of regression: its numbers, and that there is something to learn.
void open_numbers(const ClassifyCommand& o, ClassifyData& all, cli::Session& session) {
  train::LabelledTexts& learnt = all.train.texts;
  if (o.epochs == 0 && all.start.names.empty()) {
    throw InputError(
        *o.model, fmt::format("the model has no regression output of one number, which {} 0 needs",
                              field("epochs")));
  }
  if (!all.start.names.empty())
    session.note(fmt::format("{}: continues with its regression output", *o.model));
  const auto [least, most] = std::ranges::minmax(learnt.numbers);
  // What is nearer than that is the same number in a float.
  constexpr double kNearest = 1e-6;
  const double size = std::max(std::abs(least), std::abs(most));
  if (o.epochs != 0 && !(most - least > std::max(1e-30, kNearest * size))) {
    throw InputError(
        all.train.read.path,
        fmt::format("the labels are numbers from {} to {}, expected numbers that differ "
                    "by more than a millionth of the largest",
                    least, most));
  }
  all.names = {"LABEL_0"};
}

/// What `read` has to be learnt or predicted.
train::LabelledTexts texts_of(const ClassifyCommand& o, const LabelledData& data,
                              const std::vector<std::string>& names) {
  if (o.problem == train::ProblemType::kRegression) {
    return {&data.read.corpus, std::vector<TokenId>(data.read.labels.size(), 0),
            train::label_values(data.read)};
  }
  return {&data.read.corpus, train::label_numbers(data.read, names), {}};
}

void check_pooling(const ClassifyData& all) {
  if (all.steps > 0 || !all.start.pooling || all.pooling == *all.start.pooling) return;
  throw UsageError(fmt::format("{} {}: {} 0 needs the pooling of the model, {}", field("pooling"),
                               train::pooling_name(all.pooling), field("epochs"),
                               train::pooling_name(*all.start.pooling)));
}

void choose_mask(const ClassifyCommand& o, ClassifyData& all) {
  all.mask = all.start.mask;
  if (o.mask == "model" || o.mask == "full") return;
  std::string mask;
  const auto problem = usage_error_message([&] {
    mask = exchange::with_files_read(o.mask);
    mask::parse_open_mask(mask);
  });
  if (problem) throw UsageError(fmt::format("{}: {}", field("mask"), *problem));
  if (all.steps == 0 && mask != all.start.mask) {
    throw UsageError(fmt::format("{} {}: {} 0 needs the mask of the model{}", field("mask"),
                                 escape(o.mask), field("epochs"),
                                 all.start.mask && all.start.mask->size() > 80
                                     ? ", another one"
                                     : fmt::format(", {}", all.start.mask.value_or("model"))));
  }
  all.mask = mask;
}

/// Reads everything into `all`, which stays where it is. Throws InputError and UsageError for what
/// does not fit.
void open_data(const ClassifyCommand& o, ClassifyData& all, cli::Session& session) {
  session.notes(all.tokenizer.parts().path, all.tokenizer.warnings());
  all.start = open_start(o, all.tokenizer);
  if (o.model) commands::note_model(*o.model, all.start.model->design(), session);
  train::LabelledOptions reading = labelled_options(o);
  reading.length = choose_length(o, all.start);
  all.train.read = train::read_labelled(o.text, all.tokenizer, reading);
  commands::note_corpus(all.train.read.corpus, session);
  if (o.problem == train::ProblemType::kRegression) {
    all.train.texts = texts_of(o, all.train, {});
    open_numbers(o, all, session);
  } else {
    name_by_number(all.train.read, all.start);
    all.names = choose_names(o, all.start, all.train.read, session);
    all.train.texts = texts_of(o, all.train, all.names);
  }
  if (o.eval_data) {
    LabelledData& eval = all.eval.emplace();
    eval.read = train::read_labelled(*o.eval_data, all.tokenizer, reading);
    commands::note_corpus(eval.read.corpus, session);
    eval.texts = texts_of(o, eval, all.names);
  }
  all.steps = choose_steps(o, all.train.read.corpus.size());
  all.pooling = o.pooling.value_or(all.start.pooling.value_or(train::ClassifierPooling::kFirst));
  check_pooling(all);
  choose_mask(o, all);
  if (o.model && o.output && exists(join(*o.model, model::kTrainingStateName)))
    session.note(
        fmt::format("{}: {}", *o.model, surgery::left_out_note(model::kTrainingStateName)));
  if (o.model && o.output) {
    // What a classifier does not write, and poolings that it does not have.
    train::BesideModel beside = train::beside_model(all.start.model->checkpoint());
    std::ranges::move(beside.left_out, std::back_inserter(beside.kept));
    std::ranges::sort(beside.kept);
    session.notes(*o.model, train::left_out_notes(beside.kept));
  }
}

// The command.

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
    if (kept) check_files(folder, *kept);
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
    SeedResult result = result_of(found);
    table->add(seed, result);
    if (!o.output) continue;
    run.save(folder, all.tokenizer,
             {{"metrics.jsonl", metrics}, {"predictions.tsv", predictions(found, all.names)}},
             [&](const train::FileDigests& others) {
               result.files = others;
               return std::pair<std::string, std::string>(
                   kResultName, with_digest_member(record_text(settings, o.problem, result)));
             });
    if (o.seeds == 1) session.say_if_interrupted(fmt::format("{}: written", folder));
    table->keep();
  }
  if (table) table->finish();
  return cli::ExitCode::kDone;
}

}  // namespace masque::lm_train
