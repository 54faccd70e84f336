#include "train_options.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "commands/run_options.hpp"
#include "commands/similar_tokens.hpp"

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
    throw UsageError(fmt::format("{}: objective {} has no generator, expected none",
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
    throw UsageError(fmt::format("{} with {}: the two stages share nothing, expected one of them",
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
    throw UsageError(fmt::format("{}: objective {} has no decoder, expected none",
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
    throw UsageError(fmt::format("{}: objective {} has no detector, expected none",
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
      "learns what records say: labels, masks, positions, weights");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --objective tta --mask tta_word",
            "a T-TA that hides from each token all pieces of its word");
}

void declare_masks(cli::Command& c, TrainOptions& o) {
  c.option("--mask", "EXPR", o.mask,
           "what tokens may read, one mask for all layers or a list, as in mask-viz; tta_word: the "
           "words of the text [the objective's]");
  c.choice("--streams", o.streams, NameTable<model::Streams>(kStreams),
           "records: how the model reads [two for masks of permutations, else one]");
}

/// ELECTRA, masked autoencoding and correction.
void declare_two_networks(cli::Command& c, TrainOptions& o) {
  c.option("--generator-size", "R", o.generator_size, cli::AllowedRange{1e-6, 1},
           "electra, electric: widths of the generator (of each tower), as a share of the model's "
           "[0.25]");
  c.option("--discriminator-weight", "X", o.discriminator_weight, cli::AllowedRange{0, 1e9},
           "electra, electric: of the loss after the generator's [50; 1 of MLM]");
  c.option("--switch", "N", o.switch_step, cli::AllowedRange{1, 1e9},
           "electra: the generator alone for so many steps, then the other one alone");
  c.choice("--shared-tables", o.shared_tables, train::shared_tables_names(),
           "electra, electric: which tables the networks have together, where they fit: of words, "
           "of words, positions and segments, or none [all]");
  c.flag("--adversarial", o.adversarial,
         "electra: the generator learns by REINFORCE to raise the discriminator's loss");
  c.option("--decoder-size", "R", o.decoder_size, cli::AllowedRange{1e-6, 1},
           "mae: widths of the decoder, as a share of the model's [0.5]");
  c.option("--decoder-layers", "N", o.decoder_layers, cli::AllowedRange{1, 1000},
           "mae: layers of the decoder [1]");
  c.option("--detector-size", "R", o.detector_size, cli::AllowedRange{1e-6, 1},
           "correct: widths of the detector, as a share of the model's [0.5]");
  c.option("--detector-layers", "N", o.detector_layers, cli::AllowedRange{1, 1000},
           "correct: layers of the detector [1]");
  c.option("--correction-weight", "X", o.correction_weight, cli::AllowedRange{0, 1},
           "correct: of the correction's loss; the detection's has the rest [0.8]");
}

void check_init_generator(const TrainOptions& o) {
  if (!o.init_generator) return;
  if (train::find_electra(o.objective) == nullptr)
    throw UsageError(fmt::format("{}: objective {} has no generator, expected none",
                                 field("init_generator"), o.objective));
  if (o.generator_size)
    throw UsageError(fmt::format("{} with {}: the generator has a design, expected none",
                                 field("generator_size"), field("init_generator")));
  if (!o.init)
    throw UsageError(
        fmt::format("{} without {}: expected both", field("init_generator"), field("init")));
}

/// What goes together; fills in `format`.
void check_given(const cli::Command& c, TrainOptions& o) {
  if (o.init) {
    commands::refuse_design(c, "init", {"position", "position-shared", "normalizer"});
    o.changes.position = o.position;
    o.changes.position_shared = o.design.position_shared;
    if (c.is_requested("normalizer")) o.changes.normalizer = o.design.normalizer;
    if (!o.position)
      commands::refuse_unread(c, {"position-shared"}, fmt::format("without {}", field("position")));
  }
  if (o.mask && o.mask->empty())
    throw UsageError(fmt::format("{}: found '', expected a mask", field("mask")));
  if (!o.init && !o.tokenizer)
    throw UsageError(
        fmt::format("no {}, expected one without {}", field("tokenizer"), field("init")));
  if (o.pairs && o.requested_format.value_or("pairs") != "pairs")
    throw UsageError(
        fmt::format("{} is {} pairs, expected no other", field("pairs"), field("format")));
  o.format = o.pairs ? "pairs" : o.requested_format.value_or("lines");
  commands::check_options(c, o, o.format == "pairs");
  check_init_generator(o);
  if (o.init_moments && !o.init)
    throw UsageError(
        fmt::format("{} without {}: expected both", field("init_moments"), field("init")));
  o.range_requested = c.is_requested("initializer-range");
  if (!o.eval_text && o.mlm.draws == 0 && !o.mlm.fixed_selection)
    commands::refuse_unread(c, {"eval-every", "eval-sequences"},
                            fmt::format("without {}", field("eval")));
  o.ratio_requested = c.is_requested("mae-ratio");
  if (o.steps && train::StepPlan::parse(*o.steps).steps() == 0)
    commands::refuse_training(c, fmt::format("with {} 0", field("steps")), {"initializer-range"});
}

}  // namespace

records::SimilarTokens similar_of(const TrainOptions& o, const text::Tokenizer& tokenizer,
                                  cli::Session& session) {
  const std::optional<std::string> file = commands::similar_file_of(o.replace);
  if (!file) return {};
  const auto known = train::has_two_networks(o.objective)
                         ? std::vector<std::string_view>()
                         : train::find_objective(o.objective).options;
  if (std::ranges::find(known, "replace") == known.end()) {
    throw UsageError(fmt::format("{} does nothing for the objective {}, expected none",
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
  run.requested.mlm.similar = similar;
  run.settings.emplace_back("replace", similar.empty() ? "mask" : digest_of(similar));
  if (o.diversity) run.diversity = train::parse_diversity(*o.diversity);
  run.settings.emplace_back("diversity", o.diversity.value_or("none"));
  commands::add_trained_settings(o, run);
  run.recompute = o.recompute;
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
            "a small T-TA, as a folder that all tools and transformers read");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --budget 2m --eval dev.txt",
            "a masked language model in two minutes, with its loss on other text");
  c.example("lm-train train.txt -o tuned --init bert --steps 2000 --learning-rate 5e-5",
            "goes on with the weights of a checkpoint; its names and files stay");
  c.example(
      "lm-train train.txt -o tuned --init bert --steps 500 --freeze embeddings --layer-decay 0.9",
      "without its embeddings, and lower layers at lower rates");
  c.example(
      "lm-train train.txt -o more --init electra --init-generator electra/generator --objective "
      "electra",
      "goes on with both networks of ELECTRA");
  c.example(
      "droptoken noise --pairs < text | lm-train - -o model --tokenizer vocab.txt --objective "
      "correct --pairs",
      "Soft-Masked BERT: which tokens are wrong, and what should stand there");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --steps 2000 --resume",
            "goes on where it was interrupted, to the same bytes");
  add_examples_of_masks(c);
  c.example("lm-train --experiment small.conf -o model --seed 2",
            "text, tokenizer and options from a file of lines 'key = value'");
  c.argument("TEXT", o->text, "text to learn from, one line a sequence; - is standard input");
  c.option("-o,--output", "DIR", o->output, "the folder of the model", cli::Need::kRequired);
  c.option(
      "--init", "MODEL", o->init,
      "starts from a checkpoint's weights, in place of a new model; the result keeps its names "
      "where its family has the design");
  c.flag(
      "--init-moments", o->init_moments,
      "the optimizer starts with the moments in the folder of --init, as a run or ckpt-grow left "
      "them [with none]");
  c.option("--init-generator", "MODEL", o->init_generator,
           "electra: what the generator starts from, next to --init [a new one]");
  c.option("--tokenizer", "PATH", o->tokenizer, "as tok takes it [that of --init]");
  c.option(
      "--objective", "NAME", o->objective,
      "what is learnt: mlm, mdlm, tta, two-tower, clm, unilm, plm, plm-hf, mae, mae-mask, records "
      "(their labels), correct (pairs), electra, electra-15, electric, replace-mlm or "
      "all-tokens-mlm");
  c.option("--format", "FORMAT", o->requested_format,
           "lines; blocks of --length tokens of the whole text; records; pairs [lines]");
  c.flag("--pairs", o->pairs, "the text is source TAB target a line: --format pairs");
  c.one_of({"--pairs", "--format"});
  c.option("--length", "N", o->length, cli::AllowedRange{1, 1e6}, "most tokens of a sequence");
  c.option("--batch-size", "N", o->batch_size, cli::AllowedRange{1, 1e6}, "sequences of a step");
  c.option("--steps", "N", o->steps, "updates, or what --budget printed [1000]");
  c.option("--budget", "AMOUNT", o->budget,
           "as many steps as fit into a time (120s, 5m, 2h) or tokens ('10M tokens')");
  c.one_of({"--steps", "--budget"});
  commands::declare_objective(c, *o);
  declare_two_networks(c, *o);
  commands::add_replace(c, o->replace);
  c.option("--diversity", "D:W,…", o->diversity,
           "rewards differences of attention rows: weights of d1, d2, d3, mi, raw_d1, raw_d2 and "
           "raw_d3, d2:0.1,d3:0.1 say; 0 measures alone");
  declare_masks(c, *o);
  c.option("--eval", "TEXT", o->eval_text, "other text, whose loss is reported");
  c.option("--eval-every", "N", o->eval_every, cli::AllowedRange{0, 1e9}, "steps [0: at the end]");
  c.option("--eval-sequences", "N", o->eval_sequences, cli::AllowedRange{1, 1e9},
           "the first ones of that text");
  c.option("--checkpoint-every", "N", o->checkpoint_every, cli::AllowedRange{0, 1e9},
           "steps between checkpoints [0: one a minute]");
  c.option("--timing", "FILE", o->timing,
           "a JSON line for each step: its seconds and tokens a second; FILE must be outside DIR");
  c.flag("--resume", o->resume, "goes on with the run in DIR, if there is one");
  commands::declare_design(c, *o);
  commands::declare_optimizer(c, *o);
  commands::declare_trained(c, *o);
  commands::add_chunk_tokens(c, o->chunk_tokens);
  c.choice("--recompute", o->recompute, train::recompute_names(),
           "computes what layers keep for the backward pass once more: the memory of one layer, "
           "a third more work, the same bits; auto: where a chunk would keep more than 2 GiB");
  cli::add_seed(c, o->common);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  c.experiment(cli::ExperimentFile::kOption);
  c.action([o, &c](cli::Session& session) {
    check_given(c, *o);
    return run_train(*o, session);
  });
}

}  // namespace masque::lm_train
