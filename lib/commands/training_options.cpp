#include "commands/training_options.hpp"

#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
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
  return [&run](std::string_view name, const auto& value) {
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
void add_design_settings(train::RunOptions& run) {
  const auto set = setter_of(run);
  for (const train::DesignField& one : train::design_fields()) {
    std::visit([&](auto member) { set(one.key, run.design.*member); }, one.member);
  }
}

/// Everything that decides the bytes.
void add_settings(const TrainingOptions& o, std::int64_t steps, train::RunOptions& run) {
  const auto set = setter_of(run);
  set("objective", o.objective);
  set("steps", steps);
  set("batch_size", o.batch_size);
  if (!o.design_of_checkpoint) add_design_settings(run);
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

train::RunOptions run_options(const TrainingOptions& o, std::int64_t steps, std::uint64_t seed) {
  train::RunOptions run;
  run.design = o.design;
  // A query stream sees no positions of the input. With a mixer the objective is refused.
  const train::ObjectiveTraits* const traits = train::find_traits(o.objective);
  const bool two_streams = traits != nullptr && traits->query_stream && o.design.mixer.empty();
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
  for (const train::DesignField& one : train::design_fields()) {
    const std::string option = "--" + option_of(one);
    const std::string value(one.value);
    std::string help(one.help);
    if (one.varies && !several.empty())
      help += (one.key == "mixer" ? "; none: attention" : "") + several;
    if (one.by_layer) help += lists;
    if (!one.initial.empty()) help += fmt::format(" [{}]", one.initial);
    if (one.key == "position") {
      c.option(option, value, o.position, help);
    } else if (one.key == "num_attention_heads" && !several.empty()) {
      c.option(option, value, o.several_heads, help);
    } else if (const auto* number = std::get_if<Index train::DesignRecipe::*>(&one.member)) {
      c.option(option, value, o.design.**number,
               cli::AllowedRange{1, static_cast<double>(one.most)}, help);
    } else if (const auto* flag = std::get_if<bool train::DesignRecipe::*>(&one.member)) {
      c.flag(option, o.design.**flag, help, !(o.design.**flag));
    } else {
      c.option(option, value, o.design.*std::get<std::string train::DesignRecipe::*>(one.member),
               help);
    }
  }
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
