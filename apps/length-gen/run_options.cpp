#include "run_options.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/name_list.hpp"
#include "base/thread/parallel.hpp"
#include "commands/run_options.hpp"
#include "length/stream.hpp"
#include "run_output.hpp"
#include "scoring_options.hpp"

namespace masque::length_gen {

namespace {

std::optional<length::Finetuning> finetuning_of(const RunOptions& o,
                                                const std::vector<Index>& eval_lengths) {
  if (!o.finetune_lengths) {
    if (o.finetune_steps || o.finetune_learning_rate)
      throw UsageError(fmt::format("{} and {} need {}", field("finetune_steps"),
                                   field("finetune_learning_rate"), field("finetune_lengths")));
    return std::nullopt;
  }
  if (!o.finetune_steps)
    throw UsageError(
        fmt::format("{} needs {}", field("finetune_lengths"), field("finetune_steps")));
  length::Finetuning finetuning;
  finetuning.lengths = length::parse_lengths("finetune_lengths", *o.finetune_lengths);
  for (const Index length : finetuning.lengths) {
    if (std::ranges::find(eval_lengths, length) == eval_lengths.end()) {
      throw UsageError(fmt::format("{}: found {}, expected lengths listed in {}",
                                   field("finetune_lengths"), length, field("eval_lengths")));
    }
  }
  const std::int64_t steps = *o.finetune_steps;
  finetuning.schedule = {o.finetune_learning_rate.value_or(o.learning_rate), steps, steps / 20,
                         o.decay, o.decay_floor};
  return finetuning;
}

/// "sqrt,logn" as the normalizers that have these factors.
std::string normalizers_of(const RunOptions& o, const std::vector<Index>& train_lengths) {
  if (o.design.normalizer != train::DesignRecipe().normalizer)
    throw UsageError(fmt::format("{} cannot be combined with {}: it sets the normalizer",
                                 field("scale"), field("normalizer")));
  std::string names;
  for (const std::string& scale : split_names("scale", *o.scale)) {
    if (scale != "sqrt" && scale != "logn")
      throw UsageError(
          fmt::format("{}: found '{}', expected sqrt or logn", field("scale"), escape(scale)));
    const std::string name =
        scale == "sqrt" ? "softmax"
                        : fmt::format("log_n(base={})", *std::ranges::max_element(train_lengths));
    names += names.empty() ? name : "," + name;
  }
  return names;
}

}  // namespace

Requested requested_of(const RunOptions& o) {
  Requested requested;
  length::LengthRequest& request = requested.request;
  if (o.steps.has_value() == o.budget.has_value())
    throw UsageError(fmt::format("expected either {}, or {} for the whole run", field("steps"),
                                 field("budget")));
  requested.train_lengths = length::parse_lengths("train_length", o.train_lengths);
  request.eval_lengths = length::parse_lengths("eval_lengths", o.eval_lengths);
  request.steps = o.steps;
  if (o.budget) request.budget_seconds = commands::parse_seconds(*o.budget);
  for (std::int64_t s = 0; s < o.seeds; ++s)
    request.seeds.push_back(o.common.seed + static_cast<std::uint64_t>(s));
  if (o.windows) {
    for (const Index window : length::parse_lengths("window", *o.windows))
      request.windows.push_back(window);
  }
  request.finetuning = finetuning_of(o, request.eval_lengths);
  request.keep_models = o.keep_models;
  request.folder = o.output;
  train::DesignRecipe design = o.design;
  design.position = o.position.value_or(design.position);
  if (o.scale) design.normalizer = normalizers_of(o, requested.train_lengths);
  requested.arms = length::make_arms(design, o.several_heads,
                                     masks_with_files_read(o.mask.value_or(length::kOwn)));
  request.arms = requested.arms.size();
  for (const length::LengthArm& arm : requested.arms) {
    if (!o.windows || arm.mask.empty()) continue;
    const std::vector<mask::MaskLayer> masks = mask::parse_mask_layers(arm.mask);
    if (masks.size() == 1 && masks.front().mask.heads().empty()) continue;
    throw UsageError(
        fmt::format("{}: {} '{}' is a list, expected one mask for all layers and heads",
                    field("window"), field("mask"), mask::shown_layers(masks)));
  }
  return requested;
}

void check_run(const cli::Command& c, const RunOptions& o) {
  std::vector<train::DesignRecipe> designs;
  for (const length::LengthArm& arm : requested_of(o).arms) designs.push_back(arm.recipe);
  commands::check_designs(c, designs);
  commands::check_decay(c, o);
  if (o.task) {
    commands::refuse_unread(c, {"eval-tokens"}, fmt::format("with {} {}", field("task"), *o.task));
  } else {
    commands::refuse_unread(c, {"eval-examples"}, fmt::format("without {}", field("task")));
  }
}

std::unique_ptr<const length::LengthSubject> subject_of(const RunOptions& o,
                                                        const Requested& requested) {
  const auto& [arms, train_lengths, request] = requested;
  const std::vector<Index> finetune_lengths =
      request.finetuning ? request.finetuning->lengths : std::vector<Index>();
  if (o.task.has_value() == o.text.has_value())
    throw UsageError(fmt::format("expected {} with {} and {}, or {}", field("text"),
                                 field("eval_text"), field("tokenizer"), field("task")));
  if (o.task) {
    if (o.eval_text || o.tokenizer || o.objective_given || o.rate)
      throw UsageError(fmt::format(
          "{} cannot be combined with {}, {}, {} or {}: they apply to texts", field("task"),
          field("eval_text"), field("tokenizer"), field("objective"), field("rate")));
    return length::make_task_subject({*o.task, train_lengths, request.eval_lengths,
                                      finetune_lengths, o.eval_examples, o.common.seed});
  }
  if (!o.eval_text || !o.tokenizer)
    throw UsageError(
        fmt::format("{} needs {} and {}", field("text"), field("eval_text"), field("tokenizer")));
  length::TextSubject text;
  text.text = *o.text;
  text.eval_text = *o.eval_text;
  text.tokenizer = *o.tokenizer;
  text.objective = o.objective_given.value_or(o.objective);
  if (o.rate) {
    length::check_masked_option("rate", text.objective);
    text.requested.mlm.selection.rate = *o.rate;
  }
  text.train_lengths = train_lengths;
  text.eval_lengths = request.eval_lengths;
  text.finetune_lengths = finetune_lengths;
  text.eval_tokens = o.eval_tokens;
  text.seed = o.common.seed;
  text.threads = o.common.threads;
  return length::make_text_subject(text);
}

void declare_run_options(cli::Command& c, RunOptions& o) {
  c.option("-o,--output", "DIR", o.output,
           "folder for results.tsv, summary.tsv, curves.svg and loss.svg; finished cells are kept "
           "in DIR/cells",
           cli::Need::kRequired);
  c.writes({"output"}, as_suffixes(table_files()));
  c.option("--text", "FILE", o.text, "training text, cut into blocks of --train-length tokens");
  c.option("--eval-text", "FILE", o.eval_text, "text to score, cut into blocks of each length");
  c.option("--tokenizer", "PATH", o.tokenizer, "tokenizer file or folder, as for tok");
  c.option("--objective", "NAME", o.objective_given,
           "training objective for --text: mlm, tta or clm [mlm]");
  c.option("--rate", "R", o.rate, cli::AllowedRange{1e-6, 1},
           "share of the tokens that mlm predicts [0.15]");
  c.option("--task", "TASK", o.task,
           "synthetic task instead of --text; length-gen tasks lists them");
  c.option("--train-length", "LIST", o.train_lengths,
           "tokens per block, or lengths of the task's examples: one length such as 64, or a "
           "mixture such as 64,128 or 1-40");
  add_eval_lengths(c, o.eval_lengths, "lengths at which the models are scored");
  c.option(
      "--finetune-lengths", "LIST", o.finetune_lengths,
      "fine-tune the trained model at each of these lengths separately, and score it there again");
  c.option("--finetune-steps", "N", o.finetune_steps, cli::AllowedRange{1, 1e9},
           "steps of each fine-tuning");
  c.option("--finetune-learning-rate", "X", o.finetune_learning_rate, cli::AllowedRange{1e-12, 1e3},
           "peak learning rate of fine-tuning [--learning-rate]");
  add_windows(c, o.windows, "score again");
  c.option("--seeds", "N", o.seeds, cli::AllowedRange{1, 1000},
           "number of seeds for each design, counted up from --seed");
  c.option("--steps", "N", o.steps, cli::AllowedRange{1, 1e9}, "training steps of each model");
  c.option("--budget", "TIME", o.budget,
           "time for the whole run, such as 5m; the number of steps that fits is measured, printed "
           "and kept");
  c.one_of({"--steps", "--budget"});
  c.option("--batch-size", "N", o.batch_size, cli::AllowedRange{1, 1e6}, "sequences per step");
  add_eval_tokens(c, o.eval_tokens, "--eval-text");
  c.option("--eval-examples", "N", o.eval_examples, cli::AllowedRange{1, 1e9},
           "examples of a task to score at each length");
  c.flag("--keep-models", o.keep_models, "keep every trained model in DIR/models");
  commands::declare_design(c, o, "; several are separated by commas");
  c.option("--mask", "LIST", o.mask,
           "which tokens each token may read, as in mask-viz: one mask for all layers, or a list "
           "by layer; several are separated by semicolons; own is the objective's mask [own]");
  c.option("--scale", "LIST", o.scale,
           "sqrt, logn or both: scores scaled by 1/√d alone, or also by log n / log N, where N is "
           "the longest --train-length; short for --normalizer softmax,log_n(base=N)");
  commands::declare_allow_leak(c, o);
  commands::declare_optimizer(c, o);
  commands::add_chunk_tokens(c, o.chunk_tokens);
  cli::add_seed(c, o.common);
  cli::add_threads(c, o.common);
  cli::add_quiet(c, o.common);
  cli::add_table(c, o.common);
}

}  // namespace masque::length_gen
