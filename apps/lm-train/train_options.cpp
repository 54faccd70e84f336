#include "train_options.hpp"

#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::lm_train {

namespace {

void add_electra(const Options& o, train::RunOptions& run) {
  const train::ElectraVariant* variant = train::find_electra(o.objective);
  if (variant == nullptr) {
    if (!o.generator_size && !o.discriminator_weight && !o.switch_step) return;
    throw UsageError(fmt::format(
        "--generator-size, --discriminator-weight and --switch: objective {} has no generator",
        o.objective));
  }
  run.generator_size = o.generator_size.value_or(run.generator_size);
  run.discriminator_weight = o.discriminator_weight;
  run.switch_step = o.switch_step.value_or(0);
  const auto set = [&](const char* name, const auto& value) {
    run.settings.emplace_back(name, fmt::format("{}", value));
  };
  set("generator_size", run.generator_size);
  set("discriminator_weight", o.discriminator_weight.value_or(variant->weight));
  set("switch", run.switch_step);
}

}  // namespace

train::RunOptions run_options(const Options& o, const train::StepPlan& steps) {
  train::RunOptions run = common::run_options(o, steps.first, o.common.seed);
  run.trainer.schedule.changes = steps.changes;
  for (auto& [name, value] : run.settings) {
    if (name == "steps") value = steps.text();
  }
  run.design.max_position_embeddings = o.length;
  run.settings.emplace_back("format", o.format);
  run.settings.emplace_back("length", fmt::format("{}", o.length));
  add_electra(o, run);
  return run;
}

void declare_train(cli::Command& c, const Launch& launch) {
  auto o = std::make_shared<Options>();
  o->launch = &launch;
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --objective tta --steps 2000",
            "a small T-TA, as a folder that all tools and transformers read");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --budget 2m --eval dev.txt",
            "a masked language model in two minutes, with its loss on other text");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --steps 2000 --resume",
            "goes on where it was interrupted, to the same bytes");
  c.example("lm-train --experiment small.conf -o model --seed 2",
            "text, tokenizer and options from a file of lines 'key = value'");
  c.argument("TEXT", o->text, "text to learn from, one line a sequence; - is standard input");
  c.option("-o,--output", "DIR", o->output, "the folder of the model", cli::Need::kRequired);
  c.option("--tokenizer", "PATH", o->tokenizer, "as tok takes it", cli::Need::kRequired);
  c.option("--objective", "NAME", o->objective,
           "what is learnt: mlm, tta, clm, unilm, plm, plm-hf, mae-mask, electra, electra-15, "
           "replace-mlm or all-tokens-mlm");
  c.option("--format", "FORMAT", o->format,
           "lines; blocks of --length tokens of the whole text; records; pairs");
  c.option("--length", "N", o->length, cli::Range{1, 1e6}, "most tokens of a sequence");
  c.option("--batch-size", "N", o->batch_size, cli::Range{1, 1e6}, "sequences of a step");
  c.option("--steps", "N", o->steps, "updates, or what --budget printed [1000]");
  c.option("--budget", "AMOUNT", o->budget,
           "as many steps as fit into a time (120s, 5m, 2h) or tokens ('10M tokens')");
  common::declare_objective(c, *o);
  c.option("--generator-size", "R", o->generator_size, cli::Range{1e-6, 1},
           "electra: widths of the generator, as a share of the model's [0.25]");
  c.option("--discriminator-weight", "X", o->discriminator_weight, cli::Range{0, 1e9},
           "electra: of the loss behind the generator's [50; 1 of MLM]");
  c.option("--switch", "N", o->switch_step, cli::Range{1, 1e9},
           "electra: the generator alone for so many steps, then the other one alone");
  c.option("--eval", "TEXT", o->eval_text, "other text, whose loss is told");
  c.option("--eval-every", "N", o->eval_every, cli::Range{0, 1e9}, "steps [0: at the end]");
  c.option("--eval-sequences", "N", o->eval_sequences, cli::Range{1, 1e9},
           "the first ones of that text");
  c.option("--checkpoint-every", "N", o->checkpoint_every, cli::Range{0, 1e9},
           "steps between checkpoints [0: one a minute]");
  c.flag("--resume", o->resume, "goes on with the run in DIR, if there is one");
  common::declare_design(c, *o);
  common::declare_optimizer(c, *o);
  c.option("--chunk-tokens", "N", o->chunk_tokens, cli::Range{1, 1e9},
           "tokens that run together: memory; other numbers round otherwise");
  cli::add_seed(c, o->common);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  c.experiment(cli::ExperimentFile::kOption);
  c.action([o](cli::Session& session) { return run_train(*o, session); });
}

}  // namespace masque::lm_train
