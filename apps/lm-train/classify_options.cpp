#include "classify_options.hpp"

#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/split.hpp"
#include "commands/run_options.hpp"

namespace masque::lm_train {

ClassifyCommand::ClassifyCommand() {
  learning_rate = 5e-5;
  dropout = attention_dropout = 0.1;
}

void check_classify(const ClassifyCommand& o) {
  if (o.steps && o.epochs)
    throw UsageError(
        fmt::format("{} and {}: expected one of them", field("steps"), field("epochs")));
  if (o.epochs == 0 && o.seeds > 1)
    throw UsageError(
        fmt::format("{}: {} 0 draws nothing, expected none", field("seeds"), field("epochs")));
  if (o.resume && !o.output)
    throw UsageError(fmt::format("{}: no -o, expected the folder to go on in", field("resume")));
  if (o.untied)
    throw UsageError(
        fmt::format("{}: a classifier has no vocabulary, expected none", field("untied")));
  commands::check_drop(o.drop, false);
  if (!o.model) {
    if (o.epochs == 0)
      throw UsageError(
          fmt::format("{} 0 without {}: a new encoder has no labels, expected a model "
                      "that classifies",
                      field("epochs"), field("model")));
    if (o.mask == "full")
      throw UsageError(fmt::format("{} full: a new encoder has no other, expected {}",
                                   field("mask"), field("model")));
    if (!o.tokenizer)
      throw UsageError(
          fmt::format("no {}, expected one without {}", field("tokenizer"), field("model")));
  }
}

train::RunOptions classify_options(const ClassifyCommand& o, std::int64_t steps,
                                   std::uint64_t seed) {
  train::RunOptions run = commands::run_options(o, steps, seed);
  commands::add_trained_settings(o, run);
  return run;
}

train::LabelledOptions labelled_options(const ClassifyCommand& o) {
  train::LabelledOptions options;
  const std::vector<std::string_view> columns = split(o.text_columns, ',');
  options.text_columns.assign(columns.begin(), columns.end());
  if (options.text_columns.size() > 2) {
    throw UsageError(fmt::format("{}: found {}, expected one or two", field("text_columns"),
                                 options.text_columns.size()));
  }
  options.label_column = o.label_column;
  options.header = o.header;
  return options;
}

void declare_classify(cli::Command& tool) {
  auto o = std::make_shared<ClassifyCommand>();
  cli::Command& c = tool.subcommand("classify", "trains an encoder to label texts or pairs");
  c.example(
      "lm-train classify CoLA/train.tsv --model bert-base-uncased/ --text-columns 4 "
      "--label-column 2 --eval-data CoLA/dev.tsv --seeds 3",
      "accuracy, F1 and Matthews' correlation of three runs, with mean and deviation");
  c.example("lm-train classify test.tsv --model model --epochs 0 -o judged",
            "what a model that this made says of other texts: judged/predictions.tsv");
  c.example(
      "lm-train classify RTE/train.tsv --model t-ta/ --mask full --header --text-columns "
      "sentence1,sentence2 --label-column label -o model",
      "a T-TA without its diagonal, on pairs, kept as a folder");
  c.example(
      "lm-train classify RTE/train.tsv --model bert/ --text-columns 1,2 --label-column 3 "
      "--layer-decay 0.8 --drop 0.15 --mask 'window(64)' -o model",
      "lower rates for lower layers, DropToken, and a mask that the folder keeps");
  c.example(
      "lm-score score bert/ --no-header < text | cut -f2 | paste text - | lm-train classify - "
      "--model bert/ --problem-type regression -o student",
      "one pass for what costs one a token: lm-score score student --kind maskless");
  c.argument("TSV", o->text,
             "texts and labels, one a line, columns between tabs; - is standard input");
  c.option("--model", "CHECKPOINT", o->model,
           "what is trained on, as a folder; without it a new encoder, of the design below");
  c.option("--tokenizer", "PATH", o->tokenizer, "as tok takes it [the model's]");
  c.option("-o,--output", "DIR", o->output,
           "the folder of the trained model, of several seeds with a sub-folder for each");
  c.flag("--resume", o->resume,
         "takes from DIR what seeds that are done found, if their settings are these");
  c.option("--text-columns", "LIST", o->text_columns, "one column, or two: a pair of texts");
  c.option("--label-column", "COLUMN", o->label_column, "number from 1, or name");
  c.flag("--header", o->header, "the first line names the columns");
  c.option("--eval-data", "TSV", o->eval_data,
           "texts that are judged at the end, with the same columns [those that are learnt]");
  c.choice("--problem-type", o->problem, train::problem_types(),
           "what the column of labels has: names, or numbers to predict (squared error)");
  c.choice(
      "--pooling", o->pooling, train::pooling_names(),
      "what stands for a text: the first token through BERT's pooler, or the mean of all [cls; "
      "of a model that classifies, its own]");
  c.option("--mask", "EXPR", o->mask,
           "what texts read: model; full: drops T-TA's diagonal; or a mask as mask-viz takes it, "
           "which the folder keeps");
  commands::add_drop(
      c, o->drop,
      {.rate = "share of the tokens that are taken out of what is learnt, others in each epoch",
       .min_keep = "tokens that --drop leaves at least [1]"});
  c.option("--length", "N", o->length, cli::AllowedRange{2, 1e6},
           "most tokens of a text [128, or as many as the model has positions]");
  c.option("--epochs", "X", o->epochs, cli::AllowedRange{0, 1e6},
           "times through the texts [3]; 0: a model that classifies is judged as it is");
  c.option("--steps", "N", o->steps, cli::AllowedRange{1, 1e9}, "updates instead of --epochs");
  c.option("--batch-size", "N", o->batch_size, cli::AllowedRange{1, 1e6}, "texts of a step");
  c.option("--seeds", "N", o->seeds, cli::AllowedRange{1, 1e6},
           "runs, with the seeds --seed, --seed + 1 …: of the labels' layer, the order, dropout");
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
      commands::refuse_unread(c, {"drop", "renumber", "min-keep", "seed"}, because);
    }
    return run_classify(*o, session);
  });
}

}  // namespace masque::lm_train
