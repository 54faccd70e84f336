// lm-train classify: an encoder learns the labels of texts, once for each seed.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file.hpp"
#include "base/interrupt.hpp"
#include "classify_options.hpp"
#include "cli/table.hpp"
#include "kernel/parallel.hpp"
#include "probe/bootstrap.hpp"
#include "train/classify_run.hpp"

namespace masque::lm_train {

namespace {

constexpr std::int64_t kTold = 10;  // times that the loss is told of

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

/// A file of texts whose labels are numbered.
struct Data {
  train::LabelledCorpus read;
  train::LabelledTexts texts;
};

/// What all seeds share.
struct Shared {
  text::Tokenizer tokenizer;
  train::ClassifierStart start;
  std::vector<std::string> names;  ///< of the labels
  Data train;
  std::optional<Data> eval;
  std::int64_t steps = 0;
};

Index choose_length(const ClassifyCommand& o, const train::ClassifierStart& start) {
  constexpr Index kUsual = 128;
  const Index most = start.design.max_position_embeddings;
  if (!o.length) return most > 0 ? std::min(kUsual, most) : kUsual;
  if (most == 0 || *o.length <= most) return *o.length;
  throw UsageError(
      fmt::format("--length {}, expected at most the model's {} positions", *o.length, most));
}

train::ClassifierStart open_start(const ClassifyCommand& o, const text::Tokenizer& tokenizer) {
  const auto tokens = static_cast<Index>(tokenizer.size());
  if (!o.model) {
    train::DesignRecipe recipe = classify_options(o, 1, o.common.seed).design;
    recipe.vocab_size = tokens;
    recipe.max_position_embeddings = o.length.value_or(128);
    return train::start_of(recipe, tokenizer);
  }
  train::ClassifierStart start = train::start_of(*o.model, o.full_mask);
  if (tokens > start.design.vocab_size) {
    throw InputError(tokenizer.parts().path,
                     fmt::format("{} tokens, expected at most the {} of the model", tokens,
                                 start.design.vocab_size));
  }
  return start;
}

std::int64_t choose_steps(const ClassifyCommand& o, Index texts) {
  if (o.steps) return *o.steps;
  const double batches = std::ceil(static_cast<double>(texts) / static_cast<double>(o.batch_size));
  if (o.epochs == 0) return 0;
  return std::max<std::int64_t>(1, std::llround(o.epochs.value_or(3) * batches));
}

/// Those of the model, if it knows all labels of the texts; else those of the texts.
std::vector<std::string> choose_names(const ClassifyCommand& o, const train::ClassifierStart& start,
                                      const train::LabelledCorpus& texts, cli::Session& session) {
  const auto is_known = [&](const std::string& label) {
    return std::ranges::find(start.names, label) != start.names.end();
  };
  if (!start.names.empty() && std::ranges::all_of(texts.labels, is_known)) {
    session.note(fmt::format("{}: goes on with its {} labels", *o.model, start.names.size()));
    return start.names;
  }
  if (o.epochs == 0) {
    throw InputError(o.model.value_or("a new encoder"),
                     start.names.empty()
                         ? "no labels, expected a model that classifies with --epochs 0"
                         : fmt::format("its labels are {}, expected those of the texts with "
                                       "--epochs 0",
                                       escape(fmt::format("{}", fmt::join(start.names, ", ")))));
  }
  return train::label_names(texts);
}

/// Reads everything; corpora stay where they are, as `texts` points at them.
void open_all(const ClassifyCommand& o, Shared& all, cli::Session& session) {
  for (const std::string& warning : all.tokenizer.warnings()) session.note(warning);
  all.start = open_start(o, all.tokenizer);
  train::LabelledOptions reading = labelled_options(o);
  reading.length = choose_length(o, all.start);
  all.train.read = train::read_labelled(o.text, all.tokenizer, reading);
  all.names = choose_names(o, all.start, all.train.read, session);
  all.train.texts = {&all.train.read.corpus, train::label_numbers(all.train.read, all.names)};
  if (o.eval_data) {
    Data& eval = all.eval.emplace();
    eval.read = train::read_labelled(*o.eval_data, all.tokenizer, reading);
    eval.texts = {&eval.read.corpus, train::label_numbers(eval.read, all.names)};
  }
  all.steps = choose_steps(o, all.train.read.corpus.size());
}

/// Updates of one seed; returns metrics.jsonl.
std::string learn(train::ClassifyRun& run, std::int64_t steps, const std::string& what,
                  cli::Session& session) {
  std::string metrics;
  const std::int64_t every = std::max<std::int64_t>(1, steps / kTold);
  double sum = 0;
  while (run.trainer().done() < steps) {
    throw_if_interrupted();
    const train::StepReport r = run.trainer().step();
    metrics +=
        fmt::format(R"({{"step":{},"loss":{},"accuracy":{},"learning_rate":{},"gradient_norm":{}}})"
                    "\n",
                    r.step, number(r.loss.mean()), number(r.loss.accuracy()), r.learning_rate,
                    number(r.gradient_norm));
    sum += r.loss.mean();
    if (r.step % every != 0) continue;
    session.note(fmt::format("{}step {} of {}: loss {:.4f}", what, r.step, steps,
                             sum / static_cast<double>(every)));
    sum = 0;
  }
  return metrics;
}

std::string predictions(const train::Classified& found, const std::vector<std::string>& names) {
  std::string out = "id\tlabel\tpredicted";
  for (const std::string& name : names) out += fmt::format("\tp({})", escape(name));
  out += '\n';
  const std::size_t width = names.size();
  for (std::size_t i = 0; i < found.labels.size(); ++i) {
    out += fmt::format("{}\t{}\t{}", i, escape(names[static_cast<std::size_t>(found.labels[i])]),
                       escape(names[static_cast<std::size_t>(found.predicted[i])]));
    for (std::size_t k = 0; k < width; ++k)
      out += fmt::format("\t{:.6g}", found.probabilities[i * width + k]);
    out += '\n';
  }
  return out;
}

/// A row for each seed, then mean and deviation.
class Results {
 public:
  Results(const ClassifyCommand& o, cli::Session& session)
      : data_(o.eval_data.value_or(o.text)),
        table_(session, o.common, {"seed", "data", "texts", "loss", "accuracy", "f1", "mcc"}) {}

  void add(std::uint64_t seed, const train::Classified& found) {
    const probe::Confusion& c = found.confusion;
    const std::vector<double> row{found.report.mean(), c.accuracy(), c.f1(), c.mcc()};
    for (std::size_t i = 0; i < row.size(); ++i) columns_[i].push_back(row[i]);
    texts_ = c.total();
    print(seed, row);
  }
  void finish() {
    if (columns_[0].size() > 1) {
      std::vector<double> means;
      std::vector<double> spreads;
      for (const std::vector<double>& column : columns_) {
        const probe::Summary summary = probe::summarise(column, {});
        means.push_back(summary.mean);
        spreads.push_back(summary.sd);
      }
      print("mean", means);
      print("sd", spreads);
    }
    table_.finish();
  }

 private:
  static cli::Cell cell(double value) {
    return cli::Cell::raw(fmt::format("{:.4f}", value), number(value));
  }
  void print(const cli::Cell& name, const std::vector<double>& row) {
    table_.row({name, data_, texts_, cell(row[0]), cell(row[1]), cell(row[2]), cell(row[3])});
  }

  std::string data_;
  cli::Table table_;
  std::uint64_t texts_ = 0;
  std::array<std::vector<double>, 4> columns_;
};

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directory(path, error);
  if (error) throw InputError(path, "making the folder: " + error.message());
}

}  // namespace

cli::ExitCode run_classify(const ClassifyCommand& o, cli::Session& session) {
  session.configure(o.common);
  check_classify(o);
  kernel::set_threads(o.common.threads);
  if (o.output && exists(*o.output))
    throw InputError(*o.output, "there already, expected a new folder");
  Shared all{text::Tokenizer::open(o.tokenizer ? *o.tokenizer : *o.model), {}, {}, {}, {}, 0};
  open_all(o, all, session);
  const train::Pooling pooling =
      o.pooling.value_or(all.start.pooling.value_or(train::Pooling::kFirst));
  const Data& judged = all.eval ? *all.eval : all.train;
  Results results(o, session);
  for (std::int64_t k = 0; k < o.seeds; ++k) {
    const std::uint64_t seed = o.common.seed + static_cast<std::uint64_t>(k);
    const train::RunOptions given = classify_options(o, all.steps, seed);
    const train::ClassifyOptions options{.pooling = pooling,
                                         .trainer = given.trainer,
                                         .precision = given.precision,
                                         .initializer_range = given.initializer_range,
                                         .chunk_rows = given.chunk_rows};
    train::ClassifyRun run(all.start, options, all.names, all.train.texts);
    if (k == 0) {
      session.note(fmt::format("{} labels, {} texts, {} parameters, {} steps", all.names.size(),
                               all.train.read.corpus.size(), run.parameter_count(), all.steps));
      if (o.output && o.seeds > 1) make_folder(*o.output);
    }
    const std::string metrics =
        learn(run, all.steps, o.seeds > 1 ? fmt::format("seed {}: ", seed) : "", session);
    const train::Classified found = run.classify(judged.texts);
    if (o.output) {
      const std::string folder =
          o.seeds > 1 ? join(*o.output, fmt::format("seed-{}", seed)) : *o.output;
      run.save(folder, all.tokenizer,
               {{"metrics.jsonl", metrics}, {"predictions.tsv", predictions(found, all.names)}});
      session.say_if_interrupted(fmt::format("{} is written", folder));
    }
    results.add(seed, found);
  }
  results.finish();
  return cli::ExitCode::kDone;
}

}  // namespace masque::lm_train
