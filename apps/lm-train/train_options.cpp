#include "train_options.hpp"

#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::lm_train {

double parse_seconds(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::string unit(rest, end);
  const double scale = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || scale == 0 || !(number > 0) || number * scale > 1e9) {
    throw UsageError(
        fmt::format("--budget: found '{}', expected a time: 120s, 5m or 2h", escape(text)));
  }
  return number * scale;
}

train::RunOptions run_options(const Options& o, std::int64_t steps) {
  train::RunOptions run;
  run.design = o.design;
  run.design.num_hidden_layers = o.num_hidden_layers;
  run.design.hidden_size = o.hidden_size;
  run.design.num_attention_heads = o.num_attention_heads;
  run.design.head_size = o.head_size.value_or(0);
  run.design.intermediate_size = o.intermediate_size.value_or(0);
  run.design.attention_key_size = o.attention_key_size;
  run.design.tie_word_embeddings = !o.untied;
  run.design.max_position_embeddings = o.length;
  run.objective = o.objective;
  if (o.rate) run.asked.mlm.selection.rate = *o.rate;
  run.asked.drop = o.drop.value_or(0);
  const bool two = train::find_electra(o.objective) != nullptr;
  if (!two && (o.generator_size || o.discriminator_weight || o.switch_step)) {
    throw UsageError(fmt::format(
        "--generator-size, --discriminator-weight and --switch: objective {} has no generator",
        o.objective));
  }
  run.generator_size = o.generator_size.value_or(run.generator_size);
  run.discriminator_weight = o.discriminator_weight;
  run.switch_step = o.switch_step.value_or(0);
  train::TrainerOptions& trainer = run.trainer;
  trainer.schedule = {o.learning_rate, steps, o.warmup.value_or(steps / 20), o.decay,
                      o.decay_floor};
  trainer.batch_size = o.batch_size;
  trainer.optimizer = o.optimizer;
  trainer.beta1 = o.beta1;
  trainer.beta2 = o.beta2;
  trainer.weight_decay = o.weight_decay;
  trainer.clip = o.clip;
  trainer.hidden_dropout = o.dropout;
  trainer.attention_dropout = o.attention_dropout;
  trainer.seed = o.common.seed;
  run.precision = o.precision;
  run.initializer_range = o.initializer_range;
  run.chunk_rows = o.chunk_tokens;
  const auto set = [&](const char* name, const auto& value) {
    run.settings.emplace_back(name, fmt::format("{}", value));
  };
  set("objective", o.objective);
  set("format", o.format);
  set("length", o.length);
  set("steps", steps);
  set("batch_size", o.batch_size);
  set("num_hidden_layers", o.num_hidden_layers);
  set("hidden_size", o.hidden_size);
  set("num_attention_heads", o.num_attention_heads);
  set("head_size", run.design.head_size);
  set("intermediate_size", run.design.intermediate_size);
  set("attention_key_size", o.attention_key_size);
  set("layer_kind", run.design.layer_kind);
  set("position", run.design.position);
  set("position_shared", run.design.position_shared);
  set("normalizer", run.design.normalizer);
  set("norm_placement", run.design.norm_placement);
  set("norm", run.design.norm);
  set("hidden_act", run.design.hidden_act);
  set("gated", run.design.gated);
  set("mixer", run.design.mixer);
  set("talking_heads", run.design.talking_heads);
  set("previous_scores", run.design.previous_scores);
  set("tie_word_embeddings", run.design.tie_word_embeddings);
  set("optimizer", o.optimizer == train::Optimizer::kLamb ? "lamb" : "adamw");
  set("learning_rate", o.learning_rate);
  set("warmup", trainer.schedule.warmup);
  set("decay", train::decay_name(o.decay));
  set("decay_floor", o.decay_floor);
  set("weight_decay", o.weight_decay);
  set("beta1", o.beta1);
  set("beta2", o.beta2);
  set("clip", o.clip);
  set("dropout", o.dropout);
  set("attention_dropout", o.attention_dropout);
  set("initializer_range", o.initializer_range);
  set("rate", run.asked.mlm.selection.rate);
  set("drop", run.asked.drop);
  set("precision", kernel::precision_name(o.precision));
  set("chunk_tokens", o.chunk_tokens);
  set("seed", o.common.seed);
  if (two) {
    set("generator_size", run.generator_size);
    set("discriminator_weight",
        o.discriminator_weight.value_or(train::find_electra(o.objective)->weight));
    set("switch", run.switch_step);
  }
  return run;
}

namespace {

void declare_design(cli::Command& c, Options& o) {
  train::DesignRecipe& d = o.design;
  c.option("--num-hidden-layers", "N", o.num_hidden_layers, cli::Range{1, 1000}, "layers");
  c.option("--hidden-size", "N", o.hidden_size, cli::Range{1, 1e5}, "width of the states");
  c.option("--num-attention-heads", "N", o.num_attention_heads, cli::Range{1, 1e4}, "heads");
  c.option("--head-size", "N", o.head_size, cli::Range{1, 1e5},
           "of queries and keys [hidden size / heads]");
  c.option("--intermediate-size", "N", o.intermediate_size, cli::Range{1, 1e6},
           "of the feed-forward layer [4 × hidden size; 2 × of gated units]");
  c.option("--attention-key-size", "N", o.attention_key_size, cli::Range{1, 1e5},
           "of queries and keys of gated attention units");
  c.option("--layer-kind", "KIND", d.layer_kind, "transformer or gated_attention");
  c.option("--position", "SCHEME", d.position,
           "learned, sinusoidal, rope, none, or one that attn-probe variants lists");
  c.flag("--position-shared", d.position_shared, "one set of its parameters for all layers");
  c.option("--normalizer", "NAME", d.normalizer, "of attention, as attn-probe variants lists them");
  c.option("--norm-placement", "WHERE", d.norm_placement,
           "post, pre, parallel, deepnorm or deepnorm_su");
  c.option("--norm", "KIND", d.norm, "layer or rms");
  c.option("--hidden-act", "NAME", d.hidden_act, "of the feed-forward layer [gelu; gated: swish]");
  c.flag("--gated", d.gated, "a feed-forward layer with a gate");
  c.option("--mixer", "NAME", d.mixer, "in place of attention, as attn-probe variants lists them");
  c.option("--talking-heads", "WHERE", d.talking_heads, "none, before, after or both");
  c.option("--previous-scores", "KIND", d.previous_scores, "none, one_layer or accumulated");
  c.flag("--untied", o.untied, "a vocabulary matrix of its own for the output");
}

void declare_optimizer(cli::Command& c, Options& o) {
  c.choice("--optimizer", o.optimizer,
           {{"adamw", train::Optimizer::kAdamW}, {"lamb", train::Optimizer::kLamb}},
           "how gradients become steps");
  c.option("--learning-rate", "X", o.learning_rate, cli::Range{1e-12, 1e3}, "the largest");
  c.option("--warmup", "N", o.warmup, cli::Range{0, 1e9}, "steps until then [5 % of all]");
  c.choice("--decay", o.decay,
           {{"linear", train::Decay::kLinear},
            {"cosine", train::Decay::kCosine},
            {"constant", train::Decay::kConstant}},
           "how it falls afterwards");
  c.option("--decay-floor", "SHARE", o.decay_floor, cli::Range{0, 1}, "of it at the end");
  c.option("--weight-decay", "X", o.weight_decay, cli::Range{0, 1e3},
           "of matrices and tables; not of biases and norms");
  c.option("--beta1", "X", o.beta1, cli::Range{0, 0.999999}, "running mean of gradients");
  c.option("--beta2", "X", o.beta2, cli::Range{0, 0.999999999}, "of their squares");
  c.option("--clip", "X", o.clip, cli::Range{0, 1e9}, "largest norm of a gradient; 0: any");
  c.option("--dropout", "P", o.dropout, cli::Range{0, 0.95},
           "behind embeddings, attention and feed-forward");
  c.option("--attention-dropout", "P", o.attention_dropout, cli::Range{0, 0.95},
           "of attention weights");
  c.option("--initializer-range", "X", o.initializer_range, cli::Range{1e-12, 1e3},
           "deviation of the weights at the start");
  c.choice("--precision", o.precision,
           {{"f32", kernel::Precision::kF32}, {"bf16", kernel::Precision::kBf16}},
           "float; or products of operands rounded to bfloat16, with weights in float");
}

}  // namespace

void declare_train(cli::Command& c) {
  auto o = std::make_shared<Options>();
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --objective tta --steps 2000",
            "a small T-TA, as a folder that all tools and transformers read");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --budget 2m --eval dev.txt",
            "a masked language model in two minutes, with its loss on other text");
  c.example("lm-train train.txt -o model --tokenizer vocab.txt --steps 2000 --resume",
            "goes on where it was interrupted, to the same bytes");
  c.argument("TEXT", o->text, "text to learn from, one line a sequence; - is standard input");
  c.option("-o,--output", "DIR", o->output, "the folder of the model", cli::Need::kRequired);
  c.option("--tokenizer", "PATH", o->tokenizer, "as tok takes it", cli::Need::kRequired);
  c.option("--objective", "NAME", o->objective,
           "what is learnt: mlm, tta, clm, unilm, plm, plm-hf, electra, electra-15, "
           "replace-mlm, all-tokens-mlm");
  c.option("--format", "FORMAT", o->format,
           "lines; blocks of --length tokens of the whole text; records; pairs");
  c.option("--length", "N", o->length, cli::Range{1, 1e6}, "most tokens of a sequence");
  c.option("--batch-size", "N", o->batch_size, cli::Range{1, 1e6}, "sequences of a step");
  c.option("--steps", "N", o->steps, cli::Range{1, 1e9}, "updates [1000, or what --budget allows]");
  c.option("--budget", "TIME", o->budget,
           "as many steps as this time allows (120s, 5m, 2h): measured first, then printed");
  c.option("--rate", "R", o->rate, cli::Range{1e-6, 1}, "share of the tokens that are predicted");
  c.option("--drop", "R", o->drop, cli::Range{0, 0.99}, "share of the tokens that are taken out");
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
  declare_design(c, *o);
  declare_optimizer(c, *o);
  c.option("--chunk-tokens", "N", o->chunk_tokens, cli::Range{1, 1e9},
           "tokens that run together: memory; other numbers round otherwise");
  cli::add_seed(c, o->common);
  cli::add_threads(c, o->common);
  cli::add_quiet(c, o->common);
  c.action([o](cli::Session& session) { return run_train(*o, session); });
}

}  // namespace masque::lm_train
