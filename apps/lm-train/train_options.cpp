#include "train_options.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "base/digest/hash.hpp"
#include "base/error.hpp"
#include "base/thread/parallel.hpp"
#include "commands/corpus_notes.hpp"
#include "commands/run_options.hpp"
#include "commands/similar_tokens.hpp"
#include "exchange/read_masks.hpp"
#include "timing.hpp"

namespace masque::lm_train {

namespace {

constexpr std::array<std::pair<std::string_view, model::Streams>, 3> kStreams{
    {{"one", model::Streams::kOne},
     {"two", model::Streams::kTwo},
     {"fixed_keys", model::Streams::kFixedKeys}}};

void add_electra(const TrainOptions& o, train::RunOptions& run) {
  const train::ElectraVariant* variant = train::find_electra(o.objective);
  if (variant == nullptr) {
    if (!o.generator_size && !o.discriminator_weight && !o.switch_step && !o.adversarial &&
        !o.shared_tables)
      return;
    throw UsageError(fmt::format("{}: the objective {} has no generator; remove the option",
                                 field(o.generator_size         ? "generator_size"
                                       : o.discriminator_weight ? "discriminator_weight"
                                       : o.switch_step          ? "switch"
                                       : o.shared_tables        ? "shared_tables"
                                                                : "adversarial"),
                                 o.objective));
  }
  run.generator_size = o.generator_size.value_or(run.generator_size);
  run.discriminator_weight = o.discriminator_weight;
  run.switch_step = o.switch_step.value_or(0);
  run.adversarial = o.adversarial;
  if (o.shared_tables && o.switch_step)
    throw UsageError(
        fmt::format("{} with {}: the two stages share no tables; remove one of the options",
                    field("shared_tables"), field("switch")));
  run.shared_tables = o.shared_tables.value_or(run.shared_tables);
  const auto set = [&](const char* name, const auto& value) {
    run.settings.emplace_back(name, fmt::format("{}", value));
  };
  if (o.init_generator) {
    set("generator_size", "a checkpoint's");
  } else {
    set("generator_size", run.generator_size);
  }
  set("discriminator_weight", o.discriminator_weight.value_or(variant->weight));
  set("switch", run.switch_step);
  set("adversarial", run.adversarial);
  set("shared_tables", name_in(train::shared_tables_names(), run.shared_tables));
}

void add_mae(const TrainOptions& o, train::RunOptions& run) {
  if (o.objective != train::kMae) {
    if (!o.decoder_size && !o.decoder_layers) return;
    throw UsageError(fmt::format("{}: the objective {} has no decoder; remove the option",
                                 field(o.decoder_size ? "decoder_size" : "decoder_layers"),
                                 o.objective));
  }
  run.decoder_size = o.decoder_size.value_or(run.decoder_size);
  run.decoder_layers = o.decoder_layers.value_or(run.decoder_layers);
  run.settings.emplace_back("decoder_size", fmt::format("{}", run.decoder_size));
  run.settings.emplace_back("decoder_layers", fmt::format("{}", run.decoder_layers));
}

void add_correction(const TrainOptions& o, train::RunOptions& run) {
  if (o.objective != train::kCorrect) {
    if (!o.detector_size && !o.detector_layers && !o.correction_weight) return;
    throw UsageError(fmt::format("{}: the objective {} has no detector; remove the option",
                                 field(o.detector_size     ? "detector_size"
                                       : o.detector_layers ? "detector_layers"
                                                           : "correction_weight"),
                                 o.objective));
  }
  run.detector_size = o.detector_size;
  run.detector_layers = o.detector_layers;
  run.correction_weight = o.correction_weight.value_or(run.correction_weight);
  const auto set = [&](const char* name, const auto& value) {
    run.settings.emplace_back(name, value ? fmt::format("{}", *value) : "default");
  };
  set("detector_size", o.detector_size);
  set("detector_layers", o.detector_layers);
  run.settings.emplace_back("correction_weight", fmt::format("{}", run.correction_weight));
}

/// What tokens stand for which, in few letters.
std::string digest_of(const records::SimilarTokens& similar) {
  const auto hasher = make_xxh3();
  for (const std::vector<TokenId>& list : similar) {
    const auto size = static_cast<TokenId>(list.size());
    hasher->add(std::as_bytes(std::span(&size, 1)));
    hasher->add(std::as_bytes(std::span(list)));
  }
  return hasher->digest();
}

void add_examples_of_masks(cli::Command& c) {
  c.example(
      "droptoken mlm --tokenizer bert < text | lm-train - -o model --tokenizer bert --format "
      "records --objective records",
      "trains on the labels, masks, positions and weights of records");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --objective tta --mask tta_word",
            "trains a T-TA in which no token reads the pieces of its own word");
}

void declare_masks(cli::Command& c, TrainOptions& o) {
  c.option(
      "--mask", "EXPR", o.mask,
      "attention mask: an expression of mask-viz for all layers, or a list with one per layer; "
      "tta_word: masks the words of each text [the objective's]");
  c.choice("--streams", o.streams, NameTable<model::Streams>(kStreams),
           "records: streams of the model [two for masks of permutations, else one]");
}

/// ELECTRA, masked autoencoding and correction.
void declare_two_networks(cli::Command& c, TrainOptions& o) {
  c.option("--generator-size", "R", o.generator_size, cli::AllowedRange{1e-6, 1},
           "electra, electric: hidden and intermediate size of the generator (electric: of each "
           "tower) as a share of the model's [0.25]");
  c.option("--discriminator-weight", "X", o.discriminator_weight, cli::AllowedRange{0, 1e9},
           "electra, electric: weight of the second network's loss [50; 1 if it predicts tokens]");
  c.option("--switch", "N", o.switch_step, cli::AllowedRange{1, 1e9},
           "electra: train the generator alone for N steps, then the discriminator alone");
  c.choice("--shared-tables", o.shared_tables, train::shared_tables_names(),
           "electra, electric: embedding tables that both networks share, where shapes fit: none; "
           "words; or words, positions and segments [all]");
  c.flag("--adversarial", o.adversarial,
         "electra: train the generator by REINFORCE to raise the discriminator's loss");
  c.option("--decoder-size", "R", o.decoder_size, cli::AllowedRange{1e-6, 1},
           "mae: hidden and intermediate size of the decoder as a share of the model's [0.5]");
  c.option("--decoder-layers", "N", o.decoder_layers, cli::AllowedRange{1, 1000},
           "mae: number of decoder layers [1]");
  c.option("--detector-size", "R", o.detector_size, cli::AllowedRange{1e-6, 1},
           "correct: hidden and intermediate size of the detector as a share of the model's [0.5]");
  c.option("--detector-layers", "N", o.detector_layers, cli::AllowedRange{1, 1000},
           "correct: number of detector layers [1]");
  c.option("--correction-weight", "X", o.correction_weight, cli::AllowedRange{0, 1},
           "correct: weight of the correction loss; the detection loss gets the rest [0.8]");
}

void check_init_generator(const TrainOptions& o) {
  if (!o.init_generator) return;
  if (train::find_electra(o.objective) == nullptr)
    throw UsageError(fmt::format("{}: the objective {} has no generator; remove the option",
                                 field("init_generator"), o.objective));
  if (o.generator_size)
    throw UsageError(
        fmt::format("{} cannot be combined with {}: the checkpoint sets the sizes of the generator",
                    field("generator_size"), field("init_generator")));
  if (!o.init)
    throw UsageError(fmt::format("{}: needs {}", field("init_generator"), field("init")));
}

}  // namespace

void check_train(const cli::Command& c, TrainOptions& o) {
  o.design_of_checkpoint = o.init.has_value();
  if (o.init) {
    commands::refuse_design(c, "init", {"position", "position-shared", "normalizer"});
    o.changes.position = o.position;
    o.changes.position_shared = o.design.position_shared;
    if (c.is_requested("normalizer")) o.changes.normalizer = o.design.normalizer;
    if (!o.position)
      commands::refuse_unread(c, {"position-shared"}, fmt::format("without {}", field("position")));
  }
  if (o.mask && o.mask->empty())
    throw UsageError(fmt::format("{}: empty, expected a mask", field("mask")));
  if (o.mask) {
    const auto problem = usage_error_message([&] { o.mask = exchange::with_files_read(*o.mask); });
    if (problem) throw UsageError(fmt::format("{}: {}", field("mask"), *problem));
  }
  if (!o.init && !o.tokenizer)
    throw UsageError(
        fmt::format("no {0}; without {1} it is required ({0} ids:N for ids 0 to N - 1)",
                    field("tokenizer"), field("init")));
  if (o.pairs && o.requested_format.value_or("pairs") != "pairs")
    throw UsageError(fmt::format("{} means {} pairs and cannot be combined with another format",
                                 field("pairs"), field("format")));
  o.format = o.pairs ? "pairs" : o.requested_format.value_or("lines");
  if (o.format == "blocks" || o.format == "records")
    commands::refuse_unread(c, {"policy"}, fmt::format("with {} {}", field("format"), o.format));
  commands::check_options(c, o, o.format == "pairs");
  check_init_generator(o);
  if (o.init_moments && !o.init)
    throw UsageError(fmt::format("{}: needs {}", field("init_moments"), field("init")));
  o.range_requested = c.is_requested("initializer-range");
  if (!o.eval_text && o.mlm.draws == 0 && !o.mlm.fixed_selection)
    commands::refuse_unread(c, {"eval-every", "eval-sequences"},
                            fmt::format("without {}", field("eval")));
  o.ratio_requested = c.is_requested("mae-ratio");
  if (o.steps && o.steps->starts_with('@')) {
    const std::string folder = o.steps->substr(1);
    o.steps = train::TrainingRun::saved_setting(folder, "steps");
    if (!o.steps)
      throw InputError(folder, "no setting 'steps', expected the folder of a run of lm-train");
  }
  if (o.steps && train::StepPlan::parse(*o.steps).steps() == 0)
    commands::refuse_training(c, fmt::format("with {} 0", field("steps")), {"initializer-range"});
}

records::SimilarTokens similar_of(const TrainOptions& o, const text::Tokenizer& tokenizer,
                                  cli::Session& session) {
  const std::optional<std::string> file = commands::similar_file_of(o.replace);
  if (!file) return {};
  if (!train::objective_traits(o.objective).reads("replace")) {
    throw UsageError(fmt::format("{} has no effect with the objective {}; remove it",
                                 field("replace"), o.objective));
  }
  const records::TokenTable table = train::token_table(tokenizer);
  return commands::read_similar(*file, {&tokenizer, table}, o.common.threads, session);
}

train::RunOptions run_options(const TrainOptions& o, const records::SimilarTokens& similar,
                              const train::StepPlan& steps) {
  train::RunOptions run = commands::run_options(o, steps.first, o.common.seed);
  run.trainer.schedule.changes = steps.changes;
  for (auto& [name, value] : run.settings) {
    if (name == "steps") value = steps.text();
  }
  run.init = o.start;
  run.init_generator = o.generator_start;
  run.settings.emplace_back("init_moments", o.init_moments ? "yes" : "no");
  run.changes = o.changes;
  run.design.max_position_embeddings = o.length;
  run.settings.emplace_back("format", o.format);
  run.settings.emplace_back("length", fmt::format("{}", o.length));
  commands::add_long_lines_setting(o.policy, run);
  run.requested.mlm.similar = similar;
  run.settings.emplace_back("replace", similar.empty() ? "mask" : digest_of(similar));
  if (o.diversity) run.diversity = train::parse_diversity(*o.diversity);
  run.settings.emplace_back("diversity", o.diversity.value_or("none"));
  commands::add_trained_settings(o, run);
  run.recompute = o.recompute;
  run.trainer.gradient_precision = o.gradient_precision;
  run.settings.emplace_back("gradient_precision",
                            name_in(train::sum_precision_names(), o.gradient_precision));
  run.trainer.shard_optimizer = o.shard_optimizer;
  run.mask = o.mask.value_or("");
  run.streams = o.streams;
  run.settings.emplace_back("mask", o.mask.value_or("objective's"));
  run.settings.emplace_back("streams",
                            o.streams ? name_in(NameTable<model::Streams>(kStreams), *o.streams)
                                      : std::string_view("objective's"));
  add_electra(o, run);
  add_mae(o, run);
  add_correction(o, run);
  return run;
}

void declare_train(cli::Command& c, const Launch& launch) {
  auto o = std::make_shared<TrainOptions>();
  o->launch = &launch;
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --objective tta --steps 2000",
            "trains a small T-TA; all tools of this project read its folder");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --budget 2m --eval dev.txt",
            "trains a masked language model for two minutes and reports its loss on held-out text");
  c.example("lm-train train.txt -o tuned --init bert --steps 2000 --learning-rate 5e-5",
            "continues pre-training from a checkpoint; keeps its tensor names and config.json");
  c.example(
      "lm-train train.txt -o tuned --init bert --steps 500 --freeze embeddings --layer-decay 0.9",
      "freezes the embeddings and gives lower layers lower learning rates");
  c.example(
      "lm-train train.txt -o more --init electra --init-generator electra/generator --objective "
      "electra",
      "continues training both networks of ELECTRA");
  c.example(
      "droptoken noise --pairs < text | lm-train - -o model --tokenizer vocab.txt --objective "
      "correct --pairs",
      "trains Soft-Masked BERT, which detects wrong tokens and corrects them");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --steps 2000 --resume",
            "resumes an interrupted run; the result is byte for byte that of an uninterrupted one");
  add_examples_of_masks(c);
  c.example("lm-train --experiment small.conf -o model --seed 2",
            "reads text, tokenizer and options from lines 'key = value' of a file");
  declare_train_options(c, *o,
                        {.text = "training text, one sequence per line; - reads standard input",
                         .output = "folder to write: model, metrics and state of the run"});
  c.action([o, &c](cli::Session& session) {
    check_train(c, *o);
    return run_train(*o, session);
  });
}

void declare_train_options(cli::Command& c, TrainOptions& options, const TrainTexts& texts) {
  TrainOptions* const o = &options;
  c.argument("TEXT", o->text, texts.text, texts.need);
  c.option("-o,--output", "DIR", o->output, texts.output, cli::Need::kRequired);
  c.option("--init", "MODEL", o->init,
           "start from the weights of a checkpoint instead of a new model; tensor names are kept "
           "where the checkpoint's family has the design");
  c.flag("--init-moments", o->init_moments,
         "start the optimizer with the moments saved in the folder of --init by a run or by "
         "ckpt-grow [zero moments]");
  c.option("--init-generator", "MODEL", o->init_generator,
           "electra, electric: checkpoint that the generator starts from; needs --init [a new "
           "generator]");
  c.option(
      "--tokenizer", "PATH", o->tokenizer,
      "tokenizer folder or file, as for tok; bytes: a token per byte; ids:N: records or tokens "
      "of ids without texts, special ones as in ids:N,pad=0,mask=3 [that of --init; for ids, if "
      "it has none, what its config.json says]");
  c.option("--objective", "NAME", o->objective,
           "training objective: mlm, mdlm, tta, two-tower, clm, unilm, plm, plm-hf, mae, mae-mask, "
           "univae, records (labels of records), seq2seq (pairs, for an encoder–decoder), correct "
           "(pairs), electra, electra-15, electric, "
           "replace-mlm or all-tokens-mlm");
  c.option(
      "--format", "FORMAT", o->requested_format,
      "what a sequence is: lines: a line; blocks: --length tokens of the running text; records: "
      "a JSON line; pairs: a line source TAB target [lines]");
  c.option("--field", "NAME", o->field,
           "lines and blocks: each line is a JSON object, and its member NAME is the text");
  c.flag("--pairs", o->pairs, "same as --format pairs");
  c.one_of({"--pairs", "--format"});
  c.option("--length", "N", o->length, cli::AllowedRange{1, 1e6},
           "maximum number of tokens in a sequence");
  commands::add_long_lines(c, o->policy);
  c.option("--batch-size", "N", o->batch_size, cli::AllowedRange{1, 1e6}, "sequences per step");
  c.option("--steps", "N", o->steps,
           "number of optimizer updates, or @DIR: as planned in the run in DIR, which had --budget "
           "[1000]");
  c.option(
      "--budget", "AMOUNT", o->budget,
      "length of the run instead of --steps: a time (120s, 5m, 2h), tokens ('10M tokens') or steps "
      "('2k steps')");
  c.one_of({"--steps", "--budget"});
  commands::declare_objective(c, *o);
  declare_two_networks(c, *o);
  commands::add_replace(c, o->replace);
  c.option(
      "--diversity", "D:W,…", o->diversity,
      "reward attention whose rows differ: measures (d1, d2, d3, mi, raw_d1, raw_d2, raw_d3) with "
      "weights, for example d2:0.1,d3:0.1; weight 0 only measures");
  declare_masks(c, *o);
  c.option("--eval", "TEXT", o->eval_text,
           "held-out text in the same format; its loss is reported");
  c.option("--eval-every", "N", o->eval_every, cli::AllowedRange{0, 1e9},
           "steps between evaluations [0: only at the end]");
  c.option("--eval-sequences", "N", o->eval_sequences, cli::AllowedRange{1, 1e9},
           "evaluate on the first N sequences of that text");
  c.option("--checkpoint-every", "N", o->checkpoint_every, cli::AllowedRange{0, 1e9},
           "steps between checkpoints [0: one a minute]");
  add_timing(c, o->timing);
  c.flag("--resume", o->resume, "resume the run in DIR; starts a new run if DIR does not exist");
  commands::declare_design(c, *o);
  commands::declare_optimizer(c, *o);
  commands::declare_trained(c, *o);
  commands::add_chunk_tokens(c, o->chunk_tokens);
  c.choice("--gradient-precision", o->gradient_precision, train::sum_precision_names(),
           "in which numbers the processes of mpirun exchange gradients: bf16 halves what is sent, "
           "and rounds each process's gradient and the sum");
  c.flag("--shard-optimizer", o->shard_optimizer,
         "each process of mpirun keeps the moments of its own part of the parameters only; same "
         "result, less memory (ZeRO stage 1)");
  c.choice(
      "--recompute", o->recompute, train::recompute_names(),
      "recompute activations in the backward pass: saves memory, costs a third more work, same "
      "result; auto: where a chunk would store more than about 2 GiB");
  cli::add_seed(c, o->common);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  c.experiment(cli::ExperimentFile::kOption);
}

}  // namespace masque::lm_train
