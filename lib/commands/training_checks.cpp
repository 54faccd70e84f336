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
#include "nn/mixer.hpp"
#include "nn/position_scheme.hpp"

namespace masque::commands {

namespace {

/// Throws UsageError for a requested option that `declare` declares, but for those of `read`.
void refuse_declared(const cli::Command& command, void (*declare)(cli::Command&, TrainingOptions&),
                     std::initializer_list<std::string_view> read, const std::string& because) {
  TrainingOptions unread;
  cli::Command declared("declared", "");
  declare(declared, unread);
  for (const cli::Entry& entry : declared.entries()) {
    const std::string option = cli::key_of(entry);
    if (std::ranges::find(read, option) == read.end() && command.is_requested(option))
      throw UsageError(fmt::format("{} {}, expected none", field(option), because));
  }
}

}  // namespace

void refuse_design(const cli::Command& command, std::string_view model,
                   std::initializer_list<std::string_view> changes) {
  refuse_declared(
      command, [](cli::Command& c, TrainingOptions& o) { declare_design(c, o); }, changes,
      fmt::format("with {}: the model has a design", field(model)));
}

void refuse_training(const cli::Command& command, const std::string& because) {
  refuse_declared(command, declare_optimizer, {"precision"}, because);
  refuse_declared(command, declare_trained, {}, because);
}

namespace {

/// What an objective, or one of two networks, reads.
std::vector<std::string_view> read_by(const std::string& objective) {
  if (train::find_electra(objective) != nullptr) return {"rate", "drop"};
  return train::find_objective(objective == train::kMae ? "mae-mask" : objective).options;
}

/// Options that nothing reads.
class UnreadOptions {
 public:
  explicit UnreadOptions(const cli::Command& command) : command_(command) {}

  /// Throws UsageError if one of them, by their keys, was requested.
  void refuse(std::span<const std::string_view> options, std::string_view because) const {
    for (const std::string_view option : options) {
      if (!command_.is_requested(option)) continue;
      throw UsageError(fmt::format("{} does nothing {}, expected none", field(option), because));
    }
  }
  void refuse(std::initializer_list<std::string_view> options, std::string_view because) const {
    refuse(std::span(options.begin(), options.size()), because);
  }

 private:
  const cli::Command& command_;
};

constexpr std::array<std::string_view, 19> kObjectiveOptions{
    "rate",      "unit",         "choice",
    "span-p",    "span-longest", "split",
    "replace",   "draws",        "fixed-selection",
    "predict",   "perm-size",    "alpha",
    "beta",      "source",       "mix",
    "mae-ratio", "streams",      "mask",
    "drop"};
constexpr std::array<std::string_view, 7> kMaskedOptions{
    "rate", "unit", "choice", "span-p", "span-longest", "split", "replace"};

void check_objective(const UnreadOptions& unread, const TrainingOptions& o, bool pairs) {
  const std::vector<std::string_view> read = read_by(o.objective);
  for (const std::string_view option : kObjectiveOptions) {
    std::string name(option);
    std::ranges::replace(name, '-', '_');
    if (std::ranges::find(read, name) == read.end())
      unread.refuse({option}, fmt::format("for the objective {}", o.objective));
  }
  if (o.objective == "unilm") {
    const std::vector<double> mix = parse_shares("mix", o.mix, 4, 4);
    if (pairs) {
      unread.refuse(kMaskedOptions, "for the objective unilm of pairs");
      unread.refuse({"source", "mix"}, "for the objective unilm of pairs");
    }
    if (mix[0] == 0) unread.refuse(kMaskedOptions, fmt::format("with {} {}", field("mix"), o.mix));
    if (mix[1] == 0) unread.refuse({"source"}, fmt::format("with {} {}", field("mix"), o.mix));
  }
  if (o.selection.selection.choice != records::Choice::kSpan)
    unread.refuse({"span-p", "span-longest"}, fmt::format("without {} span", field("choice")));
  const bool mae = std::ranges::find(read, "mae_ratio") != read.end();
  if (o.renumber && !o.drop)
    throw UsageError(fmt::format("{} does nothing without {}", field("renumber"), field("drop")));
  if (o.min_keep && !o.drop && !mae)
    throw UsageError(fmt::format("{} does nothing without {}", field("min_keep"), field("drop")));
}

/// Whether a scheme has parameters that layers could share.
bool can_share(const std::string& position) {
  for (const char* own : {"learned", "sinusoidal", "rope", "none"}) {
    if (position == own) return false;
  }
  const auto scheme = nn::parse_position(position);
  nn::PositionShape shape;
  shape.hidden_size = 64;
  shape.num_attention_heads = 2;
  shape.head_size = shape.value_size = 32;
  shape.max_position_embeddings = 16;
  return !scheme->facts().input && !scheme->parameters(shape).empty();
}

/// Whether a mixer has other parameters with other heads.
bool has_heads(const std::string& name) {
  const nn::Mixer* mixer = nn::find_mixer(name);
  if (mixer == nullptr) return true;  // refused later
  const auto sizes_of = [&](Index heads) {
    std::vector<std::pair<Index, Index>> sizes;
    nn::MixerShape shape{.tokens = 8, .hidden_size = 16, .num_attention_heads = heads};
    for (const nn::MixerParameter& part : mixer->parameters(shape))
      sizes.emplace_back(part.rows, part.columns);
    return sizes;
  };
  return sizes_of(2) != sizes_of(4);
}

}  // namespace

void check_design(const cli::Command& command, const TrainingOptions& o) {
  const UnreadOptions unread(command);
  const std::string& kind = o.design.layer_kind;
  if (kind == "gated_attention") {
    unread.refuse({"num-attention-heads", "head-size"},
                  fmt::format("with {} {}", field("layer_kind"), kind));
  } else if (kind == "transformer") {
    unread.refuse({"attention-key-size"},
                  fmt::format("without {} gated_attention", field("layer_kind")));
  }
  const std::string& mixer = o.design.mixer;
  if (!mixer.empty()) {
    const std::string with = fmt::format("with {} {}", field("mixer"), mixer);
    unread.refuse({"normalizer", "head-size"}, with);
    if (!has_heads(mixer)) unread.refuse({"num-attention-heads"}, with);
  }
  const std::string position = o.position.value_or(o.design.position);
  if (command.is_requested("position-shared") && !can_share(position))
    unread.refuse({"position-shared"}, fmt::format("with {} {}", field("position"), position));
}

void check_options(const cli::Command& command, const TrainingOptions& o, bool pairs) {
  train::check_objective(o.objective);
  const UnreadOptions unread(command);
  check_objective(unread, o, pairs);
  check_design(command, o);
  if (o.decay == train::Decay::kConstant)
    unread.refuse({"decay-floor"}, fmt::format("with {} constant", field("decay")));
}

}  // namespace masque::commands
