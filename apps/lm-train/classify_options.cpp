#include "classify_options.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/split.hpp"
#include "commands/corpus_notes.hpp"
#include "commands/run_options.hpp"
#include "timing.hpp"

namespace masque::lm_train {

ClassifyCommand::ClassifyCommand() {
  learning_rate = 5e-5;
  dropout = attention_dropout = 0.1;
}

void check_classify(const ClassifyCommand& o) {
  if (o.steps && o.epochs)
    throw UsageError(fmt::format("{} and {} cannot be combined; use one of them", field("steps"),
                                 field("epochs")));
  if (o.epochs == 0 && o.seeds > 1)
    throw UsageError(fmt::format("{} has no effect with {} 0, which only evaluates; remove it",
                                 field("seeds"), field("epochs")));
  if (o.resume && !o.output)
    throw UsageError(fmt::format("{}: needs -o DIR, the folder to resume", field("resume")));
  if (!o.design.tie_word_embeddings)
    throw UsageError(fmt::format(
        "{} has no effect: a classifier has no output vocabulary; remove it", field("untied")));
  commands::check_drop(o.drop, false);
  if (!o.model) {
    if (o.epochs == 0)
      throw UsageError(
          fmt::format("{} 0 needs {} with a trained classifier: a new encoder has no labels",
                      field("epochs"), field("model")));
    if (o.mask == "full")
      throw UsageError(
          fmt::format("{} full: a new encoder already has full attention; remove it or use {}",
                      field("mask"), field("model")));
    if (!o.tokenizer)
      throw UsageError(
          fmt::format("no {}; without {} it is required", field("tokenizer"), field("model")));
  }
}

train::RunOptions classify_options(const ClassifyCommand& o, std::int64_t steps,
                                   std::uint64_t seed) {
  train::RunOptions run = commands::run_options(o, steps, seed);
  commands::add_trained_settings(o, run);
  commands::add_long_lines_setting(o.policy, run);
  return run;
}

train::LabelledOptions labelled_options(const ClassifyCommand& o) {
  train::LabelledOptions options;
  const std::vector<std::string_view> columns = split(o.text_columns, ',');
  options.text_columns.assign(columns.begin(), columns.end());
  if (options.text_columns.size() > 2) {
    throw UsageError(fmt::format("{}: found {} columns, expected one or two", field("text_columns"),
                                 options.text_columns.size()));
  }
  options.label_column = o.label_column;
  options.header = o.header;
  options.policy = o.policy;
  return options;
}

namespace {

void add_examples(cli::Command& c) {
  c.example(
      "lm-train classify CoLA/train.tsv --model bert-base-uncased/ --text-columns 4 "
      "--label-column 2 --eval-data CoLA/dev.tsv --seeds 3",
      "prints accuracy, F1 and Matthews' correlation of three runs, their mean and standard "
      "deviation");
  c.example("lm-train classify test.tsv --model model --epochs 0 -o judged",
            "labels other texts with a trained model; writes judged/predictions.tsv");
  c.example(
      "lm-train classify RTE/train.tsv --model t-ta/ --mask full --header --text-columns "
      "sentence1,sentence2 --label-column label -o model",
      "trains a T-TA on pairs with full attention and writes it as a folder");
  c.example(
      "lm-train classify RTE/train.tsv --model bert/ --text-columns 1,2 --label-column 3 "
      "--layer-decay 0.8 --drop 0.15 --mask 'window(64)' -o model",
      "uses lower learning rates for lower layers, DropToken and a mask that the folder keeps");
  c.example(
      "lm-score score bert/ --no-header < text | cut -f2 | paste text - | lm-train classify - "
      "--model bert/ --problem-type regression -o student",
      "learns scores that cost one pass per token; lm-score score student --kind maskless then "
      "needs one pass per text");
}

}  // namespace

void declare_classify(cli::Command& tool, const Launch& launch) {
  auto o = std::make_shared<ClassifyCommand>();
  o->launch = &launch;
  cli::Command& c =
      tool.subcommand("classify", "trains an encoder to label texts or pairs of texts");
  c.elsewhere("--init", "--model");
  add_examples(c);
  c.argument(
      "TSV", o->text,
      "texts and labels, one example per line, columns separated by tabs; - reads standard input");
  c.option("--model", "CHECKPOINT", o->model,
           "checkpoint folder to fine-tune [a new encoder of the design options below]");
  c.option("--tokenizer", "PATH", o->tokenizer,
           "tokenizer folder or file, as for tok [the model's]");
  c.option("-o,--output", "DIR", o->output,
           "folder for the trained model; with several seeds, one sub-folder per seed");
  add_timing(c, o->timing);
  c.flag("--resume", o->resume, "reuse finished seeds in DIR if their settings match");
  c.option("--text-columns", "LIST", o->text_columns,
           "column of the text; two columns are a pair of texts");
  c.option("--label-column", "COLUMN", o->label_column,
           "column of the label: a number from 1, or a name (with --header)");
  c.flag("--header", o->header, "take column names from the first line");
  c.option("--eval-data", "TSV", o->eval_data,
           "texts to evaluate at the end, with the same columns [the training texts]");
  c.choice("--problem-type", o->problem, train::problem_types(),
           "what the label column holds: names, or numbers to predict (squared error)");
  c.choice(
      "--pooling", o->pooling, train::pooling_names(),
      "vector of a text: cls: the first token through BERT's pooler; mean: the mean of all states "
      "[cls; of a classifier: its own]");
  c.option(
      "--mask", "EXPR", o->mask,
      "attention mask: model: the model's; full: every token reads all tokens, also in a T-TA; or "
      "an expression of mask-viz, which the folder keeps");
  commands::add_drop(
      c, o->drop,
      {.rate = "share of tokens to remove from training texts, drawn anew in each epoch",
       .min_keep = "--drop leaves at least N tokens [1]"});
  c.option(
      "--length", "N", o->length, cli::AllowedRange{2, 1e6},
      "maximum number of tokens in a text [128, or the model's maximum length if that is less]");
  commands::add_long_lines(c, o->policy);
  c.option("--epochs", "X", o->epochs, cli::AllowedRange{0, 1e6},
           "passes over the training texts; 0: only evaluate a trained classifier [3]");
  c.option("--steps", "N", o->steps, cli::AllowedRange{1, 1e9},
           "number of optimizer updates instead of --epochs");
  c.option("--batch-size", "N", o->batch_size, cli::AllowedRange{1, 1e6}, "texts per step");
  c.option("--seeds", "N", o->seeds, cli::AllowedRange{1, 1e6},
           "number of runs, with the seeds --seed, --seed + 1, …; a seed sets new layers, the "
           "order of texts and dropout");
  commands::declare_optimizer(c, *o);
  commands::declare_trained(c, *o);
  commands::declare_design(c, *o);
  commands::add_chunk_tokens(c, o->chunk_tokens);
  cli::add_seed(c, o->common);
  cli::add_table(c, o->common);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  c.action([o, &c](cli::Session& session) {
    if (o->model) commands::refuse_design(c, "model", {});
    commands::check_design(c, *o);
    if (o->epochs == 0) {
      const std::string because = fmt::format("with {} 0", field("epochs"));
      commands::refuse_training(c, because);
      commands::refuse_unread(c, {"drop", "renumber", "min-keep", "seed", "timing"}, because);
    }
    return run_classify(*o, session);
  });
}

}  // namespace masque::lm_train
