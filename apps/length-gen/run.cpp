// length-gen run: designs × seeds, trained at some lengths and scored at others.
#include <algorithm>
#include <chrono>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "../common/model_options.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "commands.hpp"
#include "kernel/parallel.hpp"
#include "run_output.hpp"

namespace masque::length_gen {

namespace {

struct Options : common::ModelOptions {
  std::optional<double> rate;
  std::optional<std::string> text, eval_text, tokenizer, objective_given, task;
  std::string output;
  std::string train_lengths = "64", eval_lengths = "64,128,256,512,1024";
  std::int64_t seeds = 3;
  std::int64_t eval_tokens = 32768, eval_examples = 256;
  std::optional<std::string> windows;
  std::optional<std::int64_t> steps;
  std::optional<std::string> budget;
  cli::CommonOptions common;
};

std::unique_ptr<const train::LengthSubject> subject_of(const Options& o,
                                                       const std::vector<Index>& train_lengths,
                                                       const std::vector<Index>& eval_lengths) {
  if (o.task.has_value() == o.text.has_value())
    throw UsageError("expected --text with --eval-text and --tokenizer, or --task");
  if (o.task) {
    if (o.eval_text || o.tokenizer || o.objective_given || o.rate)
      throw UsageError(
          "--task: without --eval-text, --tokenizer, --objective and --rate, which are of texts");
    return train::make_task_subject(
        {*o.task, train_lengths, eval_lengths, o.eval_examples, o.common.seed});
  }
  if (!o.eval_text || !o.tokenizer)
    throw UsageError("--text: expected --eval-text and --tokenizer with it");
  train::TextSubject request;
  request.text = *o.text;
  request.eval_text = *o.eval_text;
  request.tokenizer = *o.tokenizer;
  request.objective = o.objective;
  if (o.rate) {
    if (o.objective != "mlm") throw UsageError("--rate: only of --objective mlm");
    request.asked.mlm.selection.rate = *o.rate;
  }
  request.train_lengths = train_lengths;
  request.eval_lengths = eval_lengths;
  request.eval_tokens = o.eval_tokens;
  request.seed = o.common.seed;
  request.threads = o.common.threads;
  return train::make_text_subject(request);
}

train::LengthRequest request_of(const Options& o) {
  train::LengthRequest request;
  if (o.steps.has_value() == o.budget.has_value())
    throw UsageError("expected --steps, or --budget for the whole run");
  request.steps = o.steps;
  if (o.budget) request.budget_seconds = common::parse_seconds(*o.budget);
  for (std::int64_t s = 0; s < o.seeds; ++s)
    request.seeds.push_back(o.common.seed + static_cast<std::uint64_t>(s));
  if (o.windows) {
    for (const Index window : train::parse_lengths("--window", *o.windows))
      request.windows.push_back(window);
  }
  request.folder = o.output;
  return request;
}

cli::ExitCode run(Options& o, cli::Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  session.configure(o.common);
  kernel::set_threads(o.common.threads);
  if (o.objective_given) o.objective = *o.objective_given;
  const std::vector<Index> train_lengths = train::parse_lengths("--train-length", o.train_lengths);
  train::LengthRequest request = request_of(o);
  request.eval_lengths = train::parse_lengths("--eval-lengths", o.eval_lengths);
  const std::vector<train::LengthArm> arms = train::make_arms(o.design);
  const auto subject = subject_of(o, train_lengths, request.eval_lengths);
  request.subject = subject.get();
  request.arms = arms.size();
  request.options = [&](std::size_t arm, std::int64_t steps, std::uint64_t seed) {
    common::ModelOptions model = o;
    if (o.rate) model.selection.rate = fmt::format("{}", *o.rate);
    model.design = arms[arm].recipe;
    train::RunOptions options = common::run_options(model, steps, seed);
    // A mixer has weights for every place that there may be.
    if (!model.design.mixer.empty())
      options.design.max_position_embeddings =
          std::max(subject->longest_trained(), subject->longest_scored());
    options.settings.emplace_back("train_length", o.train_lengths);
    return options;
  };
  request.note = [&](const std::string& line) { session.note(line); };
  RunResult result;
  result.title = o.task ? *o.task : o.objective;
  result.trained = o.train_lengths;
  for (const train::LengthArm& arm : arms) result.designs.push_back(arm.name);
  result.whole = subject->whole();
  session.note(fmt::format("{} arms: {}; seeds {}", arms.size(), fmt::join(result.designs, "; "),
                           fmt::join(request.seeds, ", ")));
  request.spent_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.found = train::run_lengths(request);
  write_files(result, o.output);
  print_summary(result, o.common, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_run(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("run", "trains designs × seeds and scores them at lengths");
  c.example(
      "length-gen run --text train.txt --eval-text dev.txt --tokenizer vocab.txt --position rope "
      "--normalizer softmax,log_n --train-length 64 --eval-lengths 64,128,256 --budget 5m -o DIR",
      "two designs with three seeds each, in five minutes");
  c.example(
      "length-gen run --task copy --train-length 1-10 --eval-lengths 10,20,40 --steps 500 "
      "--position rope,alibi -o DIR",
      "a synthetic task instead of a text");
  c.example("length-gen run lengths.conf -o DIR --seeds 5",
            "options from a file of lines 'key = value'");
  c.option("-o,--output", "DIR", o->output,
           "results.tsv, summary.tsv, curves.svg; what is done is kept in DIR/cells",
           cli::Need::kRequired);
  c.option("--text", "FILE", o->text, "text to learn from, in blocks of --train-length tokens");
  c.option("--eval-text", "FILE", o->eval_text, "text to score, in blocks of every length");
  c.option("--tokenizer", "PATH", o->tokenizer, "as tok takes it");
  c.option("--objective", "NAME", o->objective_given, "of a text: mlm, tta or clm [mlm]");
  c.option("--rate", "R", o->rate, cli::Range{1e-6, 1}, "of mlm: share that is predicted [0.15]");
  c.option("--task", "TASK", o->task, "in place of a text: one that length-gen tasks lists");
  c.option("--train-length", "LIST", o->train_lengths,
           "tokens of a block, or the length of a task: 64; 64,128 and 1-40 are mixtures");
  c.option("--eval-lengths", "LIST", o->eval_lengths, "lengths to score at");
  c.option("--window", "LIST", o->windows,
           "score once more with keys hidden that are so many places away, or more");
  c.option("--seeds", "N", o->seeds, cli::Range{1, 1000}, "models of each design: --seed and on");
  c.option("--steps", "N", o->steps, cli::Range{1, 1e9}, "updates of each model");
  c.option("--budget", "TIME", o->budget,
           "as many steps as all models can make in this time (5m): measured, printed, kept");
  c.option("--batch-size", "N", o->batch_size, cli::Range{1, 1e6}, "sequences of a step");
  c.option("--eval-tokens", "N", o->eval_tokens, cli::Range{0, 1e12},
           "the first ones of --eval-text; 0: all");
  c.option("--eval-examples", "N", o->eval_examples, cli::Range{1, 1e9},
           "of a task, at each length");
  common::declare_design(c, *o, "; or several, with commas");
  common::declare_optimizer(c, *o);
  c.option("--chunk-tokens", "N", o->chunk_tokens, cli::Range{1, 1e9},
           "tokens that run together: memory; other numbers round otherwise");
  cli::add_seed(c, o->common);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  cli::add_table(c, o->common);
  c.experiment(cli::ExperimentFile::kArgument);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::length_gen
