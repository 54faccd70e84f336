#include "commands/training_options.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/parse_number.hpp"
#include "commands/run_options.hpp"
#include "model/variants.hpp"

namespace masque::commands {

std::optional<double> find_seconds(std::string_view text) {
  const double number = take_number<double>(text).value_or(0);
  const double scale = text.empty() || text == "s" ? 1 : text == "m" ? 60 : text == "h" ? 3600 : 0;
  if (scale == 0 || !(number > 0) || number * scale > 1e9) return std::nullopt;
  return number * scale;
}

double parse_seconds(std::string_view text) {
  if (const auto seconds = find_seconds(text)) return *seconds;
  throw UsageError(fmt::format("{}: found '{}', expected a time: 120s, 5m or 2h", field("budget"),
                               escape(text)));
}

namespace {

void fill_objective(const TrainingOptions& o, std::uint64_t seed,
                    train::ObjectiveOptions& requested) {
  requested.mlm = mlm_of(o.mlm, seed);
  requested.allow_leak = o.allow_leak;
  requested.perm = o.perm;
  requested.prefix = prefix_of(o.prefix);
  requested.drop = drop_of(o.drop);
  requested.mae.ratio = o.mae_ratio;
  requested.mae.min_keep = requested.drop.min_keep;
  requested.mdlm.batch_size = static_cast<std::uint64_t>(o.batch_size);
  requested.mdlm.block_size = static_cast<std::uint64_t>(o.block_size.value_or(0));
  if (o.memory)
    requested.memory = {.block_size = o.block_size.value_or(*o.memory), .memory = *o.memory};
  requested.latent_layers = o.latent_layers;
  requested.latent_size = o.latent_size;
  requested.kappa = o.kappa;
  requested.learned_kappa = o.learned_kappa;
}

/// Adds a setting, by its name and value.
auto setter_of(train::RunOptions& run) {
  return [&run](const char* name, const auto& value) {
    run.settings.emplace_back(name, fmt::format("{}", value));
  };
}

/// What an objective reads.
void add_objective_settings(const TrainingOptions& o, train::RunOptions& run) {
  const auto set = setter_of(run);
  const records::SelectionOptions& selection = o.mlm.selection.selection;
  set("rate", o.mlm.selection.rate);
  set("unit", static_cast<int>(selection.unit));
  set("choice", static_cast<int>(selection.choice));
  set("span_p", selection.span_p);
  set("span_longest", selection.span_longest);
  set("split", o.mlm.split);
  set("draws", o.mlm.draws);
  set("fixed_selection", o.mlm.fixed_selection);
  set("predict", o.perm.predict);
  set("perm_size", o.perm.perm_size);
  set("alpha", o.perm.alpha);
  set("beta", o.perm.beta);
  set("no_spans", o.perm.no_spans);
  // Blocks had one order for all of them once: those runs cannot go on.
  set("causal_blocks", std::string_view(o.perm.causal_blocks ? "own orders" : "false"));
  set("source", o.prefix.source);
  set("mix", o.prefix.mix);
  set("mae_ratio", o.mae_ratio);
  const auto set_given = [&](const char* name, const auto& value) {
    set(name, value ? fmt::format("{}", *value) : "none");
  };
  set_given("block_size", o.block_size);
  set_given("memory", o.memory);
  set_given("latent_layers", o.latent_layers);
  set_given("latent_size", o.latent_size);
  set_given("kappa", o.kappa);
  set("learned_kappa", o.learned_kappa);
  set_given("kl_weight", o.kl_weight);
  set_given("kl_cycle", o.kl_cycle);
  set_given("free_nats", o.free_nats);
  set("drop", run.requested.drop.rate);
  set("min_keep", run.requested.drop.min_keep);
  set("renumber", o.drop.renumber);
}

/// The design of a new model.
void add_design_settings(const TrainingOptions& o, train::RunOptions& run) {
  const auto set = setter_of(run);
  set("num_hidden_layers", o.num_hidden_layers);
  set("hidden_size", o.hidden_size);
  set("num_attention_heads", o.num_attention_heads);
  set("head_size", run.design.head_size);
  set("value_size", run.design.value_size);
  set("intermediate_size", run.design.intermediate_size);
  set("attention_key_size", o.attention_key_size);
  set("layer_kind", run.design.layer_kind);
  set("position", run.design.position);
  set("position_shared", run.design.position_shared);
  set("normalizer", run.design.normalizer);
  set("norm_placement", run.design.norm_placement);
  set("input_residual", run.design.input_residual);
  set("late_positions", run.design.late_positions);
  set("norm", run.design.norm);
  set("hidden_act", run.design.hidden_act);
  set("gated", run.design.gated);
  set("mixer", run.design.mixer);
  set("mixer_inner_size", run.design.mixer_inner_size);
  set("mixer_attention_size", run.design.mixer_attention_size);
  set("mixer_kernel_size", run.design.mixer_kernel_size);
  set("mixer_dilation", run.design.mixer_dilation);
  set("mixer_chunk_size", run.design.mixer_chunk_size);
  set("talking_heads", run.design.talking_heads);
  set("softmax_heads", run.design.softmax_heads);
  set("value_heads", run.design.value_heads);
  set("largest_keys", run.design.largest_keys);
  set("previous_scores", run.design.previous_scores);
  set("tie_word_embeddings", run.design.tie_word_embeddings);
}

/// Everything that decides the bytes.
void add_settings(const TrainingOptions& o, std::int64_t steps, train::RunOptions& run) {
  const auto set = setter_of(run);
  set("objective", o.objective);
  set("steps", steps);
  set("batch_size", o.batch_size);
  if (!o.design_of_checkpoint) add_design_settings(o, run);
  set("optimizer", name_in(train::optimizer_names(), o.optimizer));
  set("learning_rate", o.learning_rate);
  set("warmup", run.trainer.schedule.warmup);
  set("decay", name_in(train::decay_names(), o.decay));
  set("decay_floor", o.decay_floor);
  set("weight_decay", o.weight_decay);
  set("beta1", o.beta1);
  set("beta2", o.beta2);
  set("clip", o.clip);
  set("dropout", o.dropout);
  set("attention_dropout", o.attention_dropout);
  set("score_noise", o.score_noise);
  set("score_dropout", o.score_dropout);
  set("initializer_range", o.initializer_range);
  add_objective_settings(o, run);
  set("precision", kernel::precision_name(o.precision));
  set("chunk_tokens", o.chunk_tokens);
  set("seed", run.trainer.seed);
}

}  // namespace

train::DesignRecipe design_with_sizes(const TrainingOptions& o) {
  train::DesignRecipe design = o.design;
  design.num_hidden_layers = o.num_hidden_layers;
  design.hidden_size = o.hidden_size;
  design.num_attention_heads = o.num_attention_heads;
  design.head_size = o.head_size.value_or(0);
  design.value_size = o.value_size.value_or(0);
  design.softmax_heads = o.softmax_heads.value_or(0);
  design.value_heads = o.value_heads.value_or(0);
  design.largest_keys = o.largest_keys.value_or(0);
  design.mixer_inner_size = o.mixer_inner_size.value_or(design.mixer_inner_size);
  design.intermediate_size = o.intermediate_size.value_or(0);
  design.attention_key_size = o.attention_key_size;
  design.tie_word_embeddings = !o.untied;
  design.input_residual = !o.no_input_residual;
  design.late_positions = o.late_positions.value_or(0);
  return design;
}

train::RunOptions run_options(const TrainingOptions& o, std::int64_t steps, std::uint64_t seed) {
  train::RunOptions run;
  run.design = design_with_sizes(o);
  // A query stream sees no positions of the input. With a mixer the objective is refused.
  const bool two_streams =
      (o.objective == "plm" || o.objective == "plm-hf") && o.design.mixer.empty();
  run.design.position =
      model::position_text(o.position.value_or(two_streams ? "rope" : run.design.position));
  run.objective = o.objective;
  fill_objective(o, seed, run.requested);
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
  trainer.score_noise = o.score_noise;
  trainer.score_dropout = o.score_dropout;
  trainer.seed = seed;
  if (o.kl_cycle && (*o.kl_cycle == 1 || *o.kl_cycle == 2)) {
    throw UsageError(
        fmt::format("{} {}: the weight would always be whole; expected 0 or at least 3",
                    field("kl_cycle"), *o.kl_cycle));
  }
  if (o.kl_weight || o.kl_cycle || o.free_nats) {
    train::DivergenceLoss& divergence = run.divergence.emplace();
    divergence.weight = o.kl_weight.value_or(divergence.weight);
    divergence.cycle = o.kl_cycle.value_or(divergence.cycle);
    divergence.free_nats = o.free_nats.value_or(divergence.free_nats);
  }
  run.precision = o.precision;
  run.initializer_range = o.initializer_range;
  run.chunk_rows = o.chunk_tokens;
  run.trained = o.trained;
  add_settings(o, steps, run);
  return run;
}

void declare_design(cli::Command& c, TrainingOptions& o, const std::string& several) {
  const std::string lists = several.empty() ? "; or a list, one for each layer: '3*A, B'"
                                            : "; put a list by layer in parentheses";
  train::DesignRecipe& d = o.design;
  c.option("--num-hidden-layers", "N", o.num_hidden_layers, cli::AllowedRange{1, 1000},
           "number of layers");
  c.option("--hidden-size", "N", o.hidden_size, cli::AllowedRange{1, 1e5}, "hidden size");
  if (several.empty()) {
    c.option("--num-attention-heads", "N", o.num_attention_heads, cli::AllowedRange{1, 1e4},
             "number of attention heads");
  } else {
    c.option("--num-attention-heads", "N", o.several_heads, "number of attention heads" + several);
  }
  c.option("--head-size", "N", o.head_size, cli::AllowedRange{1, 1e5},
           "size of a head's queries and keys [hidden size / heads]");
  c.option("--value-size", "N", o.value_size, cli::AllowedRange{1, 1e5},
           "size of a head's values [hidden size / heads]");
  c.option("--intermediate-size", "N", o.intermediate_size, cli::AllowedRange{1, 1e6},
           "size of the feed-forward layer [4 × hidden size; gated attention units: 2 ×]");
  c.option("--attention-key-size", "N", o.attention_key_size, cli::AllowedRange{1, 1e5},
           "size of queries and keys in gated attention units");
  c.option("--layer-kind", "KIND", d.layer_kind,
           "kind of layers: transformer or gated_attention" + several);
  c.option("--position", "SCHEME", o.position,
           "positions: learned, sinusoidal, rope, none, or a scheme of attn-probe variants" +
               several + lists + " [learned; plm: rope]");
  c.flag("--position-shared", d.position_shared, "all layers share the parameters of --position");
  c.option("--late-positions", "N", o.late_positions, cli::AllowedRange{1, 1000},
           "add learned absolute positions also to the states in front of the last N layers");
  c.option("--normalizer", "NAME", d.normalizer,
           "function from scores to attention weights; attn-probe variants lists them" + several +
               lists);
  c.option(
      "--norm-placement", "WHERE", d.norm_placement,
      "where norms stand: post, pre, parallel, sandwich, rezero, normformer, admin, deepnorm, or "
      "deepnorm with gains for an optimizer: deepnorm_su (Adam), deepnorm_su_sgd, "
      "deepnorm_su_lamb" +
          several);
  c.flag("--no-input-residual", o.no_input_residual,
         "no residual connection around the first layer's attention");
  c.option("--norm", "KIND", d.norm, "kind of norms: layer or rms");
  c.option("--hidden-act", "NAME", d.hidden_act,
           "activation of the feed-forward layer [gelu; gated: silu]");
  c.flag("--gated", d.gated, "use gated feed-forward layers");
  c.option("--mixer", "NAME", d.mixer,
           "block instead of attention; attn-probe variants lists them" +
               (several.empty() ? several : "; none: attention" + several));
  c.option("--mixer-inner-size", "N", o.mixer_inner_size, cli::AllowedRange{1, 1e6},
           "hidden units, rank or memories of a mixer [see attn-probe variants]");
  c.option("--mixer-attention-size", "N", d.mixer_attention_size, cli::AllowedRange{1, 1e5},
           "size of amlp's tiny attention, and of mixed_chunk's queries and keys");
  c.option("--mixer-kernel-size", "N", d.mixer_kernel_size, cli::AllowedRange{1, 1e5},
           "kernel size of a mixer's convolution");
  c.option("--mixer-dilation", "N", d.mixer_dilation, cli::AllowedRange{1, 1e5},
           "distance between the taps of that convolution");
  c.option("--mixer-chunk-size", "N", d.mixer_chunk_size, cli::AllowedRange{1, 1e5},
           "tokens in a chunk of mixed_chunk");
  c.option(
      "--talking-heads", "WHERE", d.talking_heads,
      "mix heads before the softmax, after it, or both: none, before, after or both" + several);
  c.option("--softmax-heads", "N", o.softmax_heads, cli::AllowedRange{1, 1e4},
           "--talking-heads both: number of heads in the softmax [the number of heads]");
  c.option("--value-heads", "N", o.value_heads, cli::AllowedRange{1, 1e4},
           "--talking-heads after or both: number of heads of values [the number of heads]");
  c.option("--largest-keys", "K", o.largest_keys, cli::AllowedRange{1, 1e6},
           "each query reads only the keys with its K largest scores [all]");
  c.option("--previous-scores", "KIND", d.previous_scores,
           "add scores of earlier layers (RealFormer): none, one_layer or accumulated" + several);
  c.flag("--untied", o.untied, "give the output its own vocabulary matrix");
}

void declare_optimizer(cli::Command& c, TrainingOptions& o) {
  c.choice("--optimizer", o.optimizer, train::optimizer_names(), "optimizer");
  c.option("--learning-rate", "X", o.learning_rate, cli::AllowedRange{1e-12, 1e3},
           "peak learning rate, reached after the warm-up");
  c.option("--warmup", "N", o.warmup, cli::AllowedRange{0, 1e9},
           "warm-up steps [5 % of all steps]");
  c.choice("--decay", o.decay, train::decay_names(),
           "course of the learning rate after the warm-up");
  c.option("--decay-floor", "SHARE", o.decay_floor, cli::AllowedRange{0, 1},
           "share of the peak learning rate that is left at the end");
  c.option("--weight-decay", "X", o.weight_decay, cli::AllowedRange{0, 1e3},
           "weight decay of matrices and tables, not of biases and norms");
  c.option("--beta1", "X", o.beta1, cli::AllowedRange{0, 0.999999},
           "decay rate of the running mean of gradients");
  c.option("--beta2", "X", o.beta2, cli::AllowedRange{0, 0.999999999},
           "decay rate of the running mean of squared gradients");
  c.option("--clip", "X", o.clip, cli::AllowedRange{0, 1e9},
           "clip gradients to this norm; 0: never");
  c.option("--dropout", "P", o.dropout, cli::AllowedRange{0, 0.95},
           "dropout after embeddings, attention and feed-forward layers");
  c.option("--attention-dropout", "P", o.attention_dropout, cli::AllowedRange{0, 0.95},
           "dropout of attention weights");
  c.option("--score-noise", "S", o.score_noise, cli::AllowedRange{0, 1e6},
           "standard deviation of the noise added to scores that --previous-scores passes on, in "
           "training");
  c.option("--score-dropout", "P", o.score_dropout, cli::AllowedRange{0, 0.95},
           "dropout of these scores, after the noise");
  c.option("--initializer-range", "X", o.initializer_range, cli::AllowedRange{1e-12, 1e3},
           "standard deviation of initial weights");
  add_training_precision(c, o.precision);
}

void declare_trained(cli::Command& c, TrainingOptions& o) {
  c.option("--train", "PATTERN", o.trained.train,
           "train only these parameters: tensor names with *, or embeddings, position, attention, "
           "feed_forward, norm, bias, head, layer:N, layer:A-B [everything]");
  c.option("--freeze", "PATTERN", o.trained.freeze,
           "do not train these parameters; takes the same patterns as --train");
  c.option("--rate-of", "PATTERN=FACTOR", o.trained.rate_of,
           "multiply the learning rate of these parameters by FACTOR; the last match counts");
  c.option(
      "--layer-decay", "R", o.trained.layer_decay, cli::AllowedRange{1e-6, 1},
      "multiply the learning rate of layer l (from 0) of L by R^(L-l), of embeddings by R^(L+1)");
}

void add_trained_settings(const TrainingOptions& o, train::RunOptions& run) {
  const auto set = [&](const char* name, const std::vector<std::string>& patterns,
                       const char* none) {
    run.settings.emplace_back(
        name, patterns.empty() ? none : fmt::format("{}", fmt::join(patterns, " ")));
  };
  set("train", o.trained.train, "everything");
  set("freeze", o.trained.freeze, "nothing");
  set("rate_of", o.trained.rate_of, "nothing");
  run.settings.emplace_back("layer_decay", fmt::format("{}", o.trained.layer_decay.value_or(1)));
}

void declare_allow_leak(cli::Command& c, TrainingOptions& o) {
  c.flag("--allow-leak", o.allow_leak,
         "train even if positions can read the tokens that they predict");
}

void declare_objective(cli::Command& c, TrainingOptions& o) {
  add_mlm(c, o.mlm);
  c.option("--predict", "P", o.perm.predict, cli::AllowedRange{1e-6, 1},
           "plm: share of tokens to predict");
  add_perm(c, o.perm, "plm: ");
  add_prefix(c, o.prefix, "unilm: ");
  c.option("--mae-ratio", "P", o.mae_ratio, cli::AllowedRange{1e-6, 1},
           "mae, mae-mask: share of tokens to hide");
  c.option("--block-size", "B", o.block_size, cli::AllowedRange{1, 1e6},
           "mdlm: block diffusion in blocks of B tokens, from left to right; with --memory: tokens "
           "per block [M]");
  c.option(
      "--memory", "M", o.memory, cli::AllowedRange{0, 1e6},
      "clm, mlm, plm: segments of Transformer-XL: a token reads its block of --block-size tokens "
      "and the M tokens before it, without gradients into those");
  c.option(
      "--latent-layers", "L", o.latent_layers, cli::AllowedRange{1, 1e4},
      "univae: put a bottleneck in front of each of the last L layers [a third of all, at most 4]");
  c.option("--latent-size", "D", o.latent_size, cli::AllowedRange{2, 1e4},
           "univae: dimensions of each bottleneck, a point on a sphere [16]");
  c.option("--kappa", "K", o.kappa, cli::AllowedRange{1e-6, 1e6},
           "univae: concentration of the distribution that points are drawn from in training [32]");
  c.flag(
      "--learned-kappa", o.learned_kappa,
      "univae: learn a concentration per bottleneck, from --kappa on; adds the KL divergence from "
      "the uniform distribution to the loss");
  c.option("--kl-weight", "X", o.kl_weight, cli::AllowedRange{0, 1e6},
           "univae: weight of that divergence [1]");
  c.option("--kl-cycle", "N", o.kl_cycle, cli::AllowedRange{0, 1e9},
           "univae: raise that weight over the first half of every N steps, at least 3; 0: "
           "constant [0]");
  c.option("--free-nats", "X", o.free_nats, cli::AllowedRange{0, 1e6},
           "univae: a bottleneck of at most X nats adds no loss [0]");
  add_drop(c, o.drop,
           {.rate = "share of tokens to remove from each sequence (DropToken)",
            .min_keep = "--drop, mae and mae-mask leave at least N tokens [1]"});
  declare_allow_leak(c, o);
}

}  // namespace masque::commands
