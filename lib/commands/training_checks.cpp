// Options of training that nothing reads are refused, by what was requested.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/option_values.hpp"
#include "commands/training_options.hpp"
#include "model/variants.hpp"
#include "nn/mixer/mixer.hpp"

namespace masque::commands {

namespace {

/// The keys of the options that `declare` declares.
std::vector<std::string> keys_of(void (*declare)(cli::Command&, TrainingOptions&)) {
  TrainingOptions unread;
  cli::Command declared("declared", "");
  declare(declared, unread);
  std::vector<std::string> keys;
  for (const cli::Entry& entry : declared.entries()) keys.push_back(cli::key_of(entry));
  return keys;
}

}  // namespace

void refuse_unread(const cli::Command& command, std::span<const std::string_view> options,
                   std::string_view because) {
  for (const std::string_view option : options) {
    if (command.is_requested(option)) cli::refuse_unread(option, because);
  }
}

void refuse_unread(const cli::Command& command, std::initializer_list<std::string_view> options,
                   std::string_view because) {
  refuse_unread(command, std::span(options.begin(), options.size()), because);
}

void refuse_design(const cli::Command& command, std::string_view model,
                   std::initializer_list<std::string_view> changes) {
  for (const std::string& option :
       keys_of([](cli::Command&c, TrainingOptions&o) { declare_design(c, o); })) {
    if (std::ranges::find(changes, option) == changes.end() && command.is_requested(option))
      throw UsageError(fmt::format("{} cannot be combined with {}: the checkpoint sets the design",
                                   field(option), field(model)));
  }
}

void refuse_training(const cli::Command& command, std::string_view because,
                     std::initializer_list<std::string_view> read) {
  for (const auto declare : {declare_optimizer, declare_trained}) {
    for (const std::string& option : keys_of(declare)) {
      if (option == "precision" || std::ranges::find(read, option) != read.end()) continue;
      refuse_unread(command, {option}, because);
    }
  }
}

namespace {

/// Refuses the options of `command` that other objectives than `objective` read.
void refuse_other_objectives(const cli::Command& command, const std::string& objective) {
  const std::vector<train::NamedObjective> all = train::all_objectives();
  const train::ObjectiveTraits& own = train::objective_traits(objective);
  for (const cli::Entry& entry : command.entries()) {
    const std::string option = cli::key_of(entry);
    std::string name = option;
    std::ranges::replace(name, '-', '_');
    const auto reads = [&](const train::NamedObjective& one) { return one.traits.reads(name); };
    if (!own.reads(name) && std::ranges::any_of(all, reads))
      refuse_unread(command, {option}, fmt::format("with the objective {}", objective));
  }
}

constexpr std::array<std::string_view, 7> kMaskedOptions{
    "rate", "unit", "choice", "span-p", "span-longest", "split", "replace"};

void check_objective(const cli::Command& command, const TrainingOptions& o, bool pairs) {
  const train::ObjectiveTraits& traits = train::objective_traits(o.objective);
  refuse_other_objectives(command, o.objective);
  if (traits.reads("rate")) {
    const std::vector<double> rates = parse_shares("rate", o.mlm.selection.rate, 1, 2);
    if (rates.back() == 0) {
      throw UsageError(
          fmt::format("{}: found 0, expected more: no token would be predicted", field("rate")));
    }
  }
  if (train::has_two_networks(o.objective))
    refuse_unread(command, {"allow-leak"}, fmt::format("with the objective {}", o.objective));
  if (traits.reads("mix")) {
    const std::vector<double> mix = parse_shares("mix", o.prefix.mix, 4, 4);
    if (pairs) {
      const std::string on_pairs = fmt::format("with the objective {} on pairs", o.objective);
      refuse_unread(command, kMaskedOptions, on_pairs);
      refuse_unread(command, {"source", "mix"}, on_pairs);
    }
    if (mix[0] == 0)
      refuse_unread(command, kMaskedOptions, fmt::format("with {} {}", field("mix"), o.prefix.mix));
    if (mix[1] == 0)
      refuse_unread(command, {"source"}, fmt::format("with {} {}", field("mix"), o.prefix.mix));
  }
  if (traits.reads("memory") && !o.memory)
    refuse_unread(command, {"block-size"}, fmt::format("without {}", field("memory")));
  if (o.memory && *o.memory == 0 && !o.block_size)
    throw UsageError(fmt::format("{} 0: needs {}", field("memory"), field("block_size")));
  // Of a starting model nothing is known yet: the run looks at it.
  if (!o.learned_kappa && !command.is_requested("init"))
    refuse_unread(command, {"kl-weight", "kl-cycle", "free-nats"},
                  fmt::format("without {}", field("learned_kappa")));
  if (o.kl_weight == 0.0)
    refuse_unread(command, {"kl-cycle", "free-nats"}, fmt::format("with {} 0", field("kl_weight")));
  if (o.perm.no_spans)
    refuse_unread(command, {"alpha", "beta"}, fmt::format("with {}", field("no_spans")));
  if (o.mlm.selection.selection.choice != records::Choice::kSpan)
    refuse_unread(command, {"span-p", "span-longest"},
                  fmt::format("without {} span", field("choice")));
  check_drop(o.drop, traits.reads("mae_ratio"));
}

/// Whether a scheme has parameters that layers could share.
bool can_share(const train::DesignRecipe& recipe) {
  model::Design design;
  design.num_hidden_layers = recipe.num_hidden_layers;
  design.hidden_size = design.embedding_size = 64;
  design.num_attention_heads = 2;
  design.head_size = 32;
  design.max_position_embeddings = 16;
  design.variants.position = recipe.position;
  return !model::position_scheme(design)->facts().input &&
         !model::position_parameters(design).empty();
}

/// Whether the mixer called `name` reads a size; an unknown one is refused later.
bool reads_size(const std::string& name, Index nn::MixerShape::*size) {
  const nn::Mixer* mixer = nn::find_mixer(name);
  return mixer == nullptr || nn::reads_size(mixer->info(), size);
}

/// The sizes of mixers alone.
constexpr std::array<std::pair<std::string_view, Index nn::MixerShape::*>, 5> kMixerSizes{
    {{"mixer-inner-size", &nn::MixerShape::inner_size},
     {"mixer-attention-size", &nn::MixerShape::attention_size},
     {"mixer-kernel-size", &nn::MixerShape::kernel_size},
     {"mixer-dilation", &nn::MixerShape::dilation},
     {"mixer-chunk-size", &nn::MixerShape::chunk_size}}};

/// An option that a design does not read.
struct Unread {
  std::string_view option;
  std::string because;
};

std::vector<Unread> unread_by(const train::DesignRecipe& design, bool asks_to_share) {
  std::vector<Unread> unread;
  const auto add = [&](std::initializer_list<std::string_view> options, const std::string& why) {
    for (const std::string_view option : options) unread.push_back({option, why});
  };
  const std::string& kind = design.layer_kind;
  if (kind == "gated_attention") {
    const std::string with = fmt::format("with {} {}", field("layer_kind"), kind);
    add({"num-attention-heads", "head-size", "value-size"}, with);
    // Other values are refused with the design.
    if (design.talking_heads == "none") add({"talking-heads"}, with);
  } else if (kind == "transformer") {
    add({"attention-key-size"}, fmt::format("without {} gated_attention", field("layer_kind")));
  }
  const std::string& mixer = design.mixer;
  for (const auto& [option, size] : kMixerSizes) {
    if (mixer.empty()) {
      add({option}, fmt::format("without {}", field("mixer")));
    } else if (!reads_size(mixer, size)) {
      add({option}, fmt::format("with {} {}", field("mixer"), mixer));
    }
  }
  if (!mixer.empty()) {
    const std::string with = fmt::format("with {} {}", field("mixer"), mixer);
    add({"normalizer", "scale", "head-size", "value-size", "attention-dropout"}, with);
    if (design.talking_heads == "none") add({"talking-heads"}, with);
    if (design.previous_scores == "none") add({"previous-scores"}, with);
    if (!reads_size(mixer, &nn::MixerShape::num_attention_heads))
      add({"num-attention-heads"}, with);
  }
  if (design.previous_scores == "none")
    add({"score-noise", "score-dropout"}, fmt::format("without {}", field("previous_scores")));
  if (asks_to_share && !can_share(design))
    add({"position-shared"}, fmt::format("with {} {}", field("position"), design.position));
  return unread;
}

}  // namespace

void check_designs(const cli::Command& command, std::span<const train::DesignRecipe> designs) {
  const bool shares = command.is_requested("position-shared");
  std::vector<Unread> unread = unread_by(designs.front(), shares);
  for (const train::DesignRecipe& design : designs.subspan(1)) {
    const std::vector<Unread> others = unread_by(design, shares);
    std::erase_if(unread, [&](const Unread& one) {
      return std::ranges::find(others, one.option, &Unread::option) == others.end();
    });
  }
  // Of a starting model nothing is known yet: check_score_noise() looks at it.
  const bool starts = command.is_requested("init") || command.is_requested("model");
  for (const Unread& one : unread) {
    if (!starts || !one.option.starts_with("score-"))
      refuse_unread(command, {one.option}, one.because);
  }
}

void check_design(const cli::Command& command, const TrainingOptions& o) {
  train::DesignRecipe design = o.design;
  design.position = o.position.value_or(design.position);
  check_designs(command, {&design, 1});
}

void check_decay(const cli::Command& command, const TrainingOptions& o) {
  if (o.decay == train::Decay::kConstant)
    refuse_unread(command, {"decay-floor"}, fmt::format("with {} constant", field("decay")));
}

void check_options(const cli::Command& command, const TrainingOptions& o, bool pairs) {
  check_objective(command, o, pairs);
  check_design(command, o);
  check_decay(command, o);
}

}  // namespace masque::commands
