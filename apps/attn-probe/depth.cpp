// attn-probe depth: how far one optimizer step moves a model, and the sizes of its states, by
// layer.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/string/comma_list.hpp"
#include "cli/shared_options.hpp"
#include "cli/table.hpp"
#include "commands.hpp"
#include "commands/corpus_notes.hpp"
#include "commands/model_notes.hpp"
#include "commands/open_model.hpp"
#include "commands/result_format.hpp"
#include "commands/training_options.hpp"
#include "evaluate/score/sentence.hpp"
#include "kernel/parallel.hpp"
#include "model/checkpoint/load.hpp"
#include "train/run/depth_probe.hpp"

namespace masque::attn_probe {

namespace {

constexpr Index kLength = 64;

struct Options {
  std::string model, text = "-";
  std::optional<std::string> tokenizer, objective;
  train::FirstUpdate optimizer = train::FirstUpdate::kAdam;
  double learning_rate = 1e-3;
  std::optional<std::int64_t> length;
  evaluate::LengthPolicy::Kind policy = evaluate::LengthPolicy::Kind::kFirst;  ///< of long lines
  std::int64_t sequences = 32;
  std::optional<std::int64_t> steps, batch_size;
  std::optional<std::int64_t> digits;
  cli::CommonOptions common;
};

/// The objective that follows from the model.
std::string objective_of(const model::Design& design) {
  if (design.streams == model::Streams::kTowers)
    throw UsageError("two towers are not supported: expected one stack of layers");
  if (const train::ObjectiveKind* kind = train::objective_made_for(design))
    return std::string(kind->name);
  throw UsageError("no head that predicts tokens: give --objective");
}

train::RunOptions run_options(const Options& o, const std::string& objective) {
  commands::TrainingOptions training;
  training.objective = objective;
  training.learning_rate = o.learning_rate;
  training.weight_decay = 0;
  training.clip = 0;
  training.warmup = 0;
  training.decay = train::Decay::kConstant;
  training.batch_size = o.batch_size.value_or(32);
  if (o.optimizer == train::FirstUpdate::kLamb) training.optimizer = train::Optimizer::kLamb;
  train::RunOptions options = commands::run_options(training, o.steps.value_or(1), o.common.seed);
  return options;
}

void check(const Options& o) {
  if (!o.steps && o.batch_size) throw UsageError("--batch-size needs --steps");
  if (o.steps && o.optimizer == train::FirstUpdate::kSgd)
    throw UsageError("--optimizer sgd cannot be combined with --steps: expected adam or lamb");
  const train::ObjectiveTraits* const traits = train::find_traits(o.objective.value_or(""));
  if (traits != nullptr && traits->reads_labels) {
    throw UsageError(
        fmt::format("--objective {}: not supported, lines of text have no labels", *o.objective));
  }
  if (train::has_two_networks(o.objective.value_or("")))
    throw UsageError(
        fmt::format("--objective {}: trains two networks, expected an objective with one network",
                    *o.objective));
}

void follow(const Options& o, train::TrainingRun& run, const commands::ResultFormat& format,
            cli::Session& session) {
  cli::Table table(session, o.common, {"step", "loss", "gradient", "change"});
  train::follow_change(run, o.sequences, [&](const train::StepChange& step) {
    table.row(
        {step.step, format.cell(step.loss), format.cell(step.gradient), format.cell(step.change)});
  });
  table.finish();
}

void probe(const Options& o, train::TrainingRun& run, const commands::ResultFormat& format,
           cli::Session& session) {
  const train::DepthReport report =
      train::probe_depth(run, o.optimizer, o.learning_rate, o.sequences);
  session.note(fmt::format("{}; loss {} before an update, {} after it; gradient {}",
                           counted(report.rows, "position"), format.text(report.loss),
                           format.text(report.loss_after), format.text(report.gradient)));
  cli::Table table(session, o.common,
                   {"layer", "change", "update", "gradient", "state", "attention_branch",
                    "feed_forward_branch", "attention_norm_input", "feed_forward_norm_input"});
  Index number = 0;
  for (const train::DepthLayer& layer : report.layers) {
    table.row({number++, format.cell(layer.change), format.cell(layer.update),
               format.cell(layer.gradient), format.cell(layer.state),
               format.cell(layer.attention_branch), format.cell(layer.feed_forward_branch),
               format.cell(layer.attention_norm_input),
               format.cell(layer.feed_forward_norm_input)});
  }
  table.row({std::string("all"), format.cell(report.change), "", format.cell(report.gradient), "",
             "", "", "", ""});
  table.finish();
}

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  check(o);
  kernel::set_threads(o.common.threads);
  if (model::is_encoder_decoder(o.model)) {
    throw InputError(o.model,
                     "an encoder–decoder, expected one stack of layers: an update of two is not "
                     "measured");
  }
  const auto start = std::make_shared<const model::StartingModel>(o.model);
  commands::note_model(o.model, start->design(), session);
  const std::string objective = o.objective ? *o.objective : objective_of(start->design());
  const train::ObjectiveTraits& traits = train::objective_traits(objective);
  const text::Tokenizer tokenizer =
      text::Tokenizer::open(o.tokenizer.value_or(o.model), {.model = o.model});
  session.notes(tokenizer.parts().path, tokenizer.warnings());
  train::CorpusOptions reading;
  const Index most = start->design().max_position_embeddings;
  if (o.length && most > 0 && *o.length > most) {
    throw UsageError(
        fmt::format("--length {}, expected at most the {} tokens of {}", *o.length, most, o.model));
  }
  reading.length = o.length.value_or(most > 0 ? std::min<Index>(kLength, most) : kLength);
  reading.policy = o.policy;
  reading.threads = o.common.threads;
  if (traits.predicts_first) reading.begin = evaluate::begin_token(tokenizer);
  train::RunOptions options = run_options(o, objective);
  options.init = start;
  options.design.max_position_embeddings = reading.length;
  train::TrainingRun training(std::move(options), tokenizer,
                              train::read_corpus(o.text, tokenizer, reading));
  commands::note_corpus(training.corpus(), session);
  if (training.corpus().size() > o.sequences) {
    session.note(limit_note(training.corpus().source(), o.sequences, training.corpus().size(),
                            "sequences are measured", "sequences"));
  }
  for (const std::string& name : training.new_tensors())
    session.note(fmt::format("{}: not in the checkpoint, newly initialized", name));
  session.note(fmt::format("{}: {}, {} layers, {}", o.model, training.family(),
                           training.design().num_hidden_layers, objective));
  const auto format = commands::ResultFormat::of(kernel::Precision::kF32, o.digits);
  if (o.steps) {
    follow(o, training, format, session);
  } else {
    probe(o, training, format, session);
  }
  // As where lines are read one by one.
  if (training.corpus().cut_text().skipped > 0) return cli::ExitCode::kInput;
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_depth(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "depth",
      "measures how far one optimizer step moves a model's last states, in total and by layer");
  c.example("attn-probe depth bert-base-uncased/ < text",
            "for every layer: change, gradient, and sizes of states, branches and norm inputs");
  c.example(
      "lm-train text -o deep --tokenizer vocab.txt --norm-placement deepnorm "
      "--num-hidden-layers 50 --steps 0 && attn-probe depth deep --steps 20 < text",
      "how far a new model of 50 layers moves in 20 steps without warm-up");
  cli::add_checkpoint(c, o->model, "MODEL");
  c.option("--input", "FILE", o->text, "lines of text; - is standard input");
  c.option("--tokenizer", "PATH", o->tokenizer, "a tokenizer as tok takes it [the folder's]");
  c.option(
      "--objective", "NAME", o->objective,
      "training objective, as in lm-train, with one network [by the model: mlm, tta, plm or clm]");
  c.choice("--optimizer", o->optimizer, train::first_updates(),
           "optimizer of the step; without warm-up, clipping and weight decay");
  c.option("--learning-rate", "X", o->learning_rate, cli::AllowedRange{1e-12, 1e6},
           "learning rate of every step");
  c.option("--steps", "N", o->steps, cli::AllowedRange{1, 1e9},
           "train N steps at this rate, and print after each how far the last states have moved "
           "since the start");
  c.option("--batch-size", "N", o->batch_size, cli::AllowedRange{1, 1e6},
           "with --steps: sequences per step [32]");
  c.option("--sequences", "N", o->sequences, cli::AllowedRange{1, 1e6},
           "measure the change on the first N sequences of the text");
  c.option("--length", "N", o->length, cli::AllowedRange{3, 1e6},
           "maximum number of tokens in a line [64, or the model's maximum length if that is "
           "less]");
  commands::add_long_lines(c, o->policy);
  commands::add_digits(c, o->digits);
  cli::add_seed(c, o->common);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  cli::add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::attn_probe
