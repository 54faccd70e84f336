#include "train/run/trained_parameters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/glob.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"
#include "train/network/network_part.hpp"

namespace masque::train {

namespace {

using model::Role;

constexpr double kMostRate = 1e6;
constexpr std::string_view kLayerWord = "layer:";

/// What a tensor is, whatever its name.
struct TensorKind {
  Role role = Role::kDecoder;
  NetworkPart part = NetworkPart::kHead;
  bool bias = false;
  Index layer = 0;
  Index layers = 0;  ///< of its network
};

using InWord = bool (*)(const TensorKind&);

bool of_positions(const TensorKind& kind) {
  switch (kind.role) {
    case Role::kPositionTable:
    case Role::kLatePositions:
    case Role::kPositionPart:
    case Role::kSharedPositionPart:
    case Role::kRelativeTable:
    case Role::kRelativeNorm:
    case Role::kRelative:
    case Role::kPositionKey:
    case Role::kPositionQuery:
    case Role::kPositionBias: return true;
    default: return false;
  }
}

/// Those of dense layers and norms, and XLNet's of queries.
bool of_biases(const TensorKind& kind) {
  return kind.bias || kind.role == Role::kContentBias || kind.role == Role::kPositionBias ||
         kind.role == Role::kSegmentBias;
}

bool of_feed_forward(const TensorKind& kind) {
  return kind.role == Role::kUp || kind.role == Role::kGate || kind.role == Role::kDown ||
         model::is_of_experts(kind.role);
}

bool of_attention(const TensorKind& kind) {
  return kind.part == NetworkPart::kLayers && !model::is_norm(kind.role) && !of_positions(kind) &&
         !of_feed_forward(kind);
}

constexpr std::array<std::pair<std::string_view, InWord>, 7> kWords{{
    {"embeddings", [](const TensorKind& kind) { return kind.part == NetworkPart::kEmbeddings; }},
    {"position", of_positions},
    {"attention", of_attention},
    {"feed_forward", of_feed_forward},
    {"norm", [](const TensorKind& kind) { return model::is_norm(kind.role); }},
    {"bias", of_biases},
    {"head", [](const TensorKind& kind) { return kind.part == NetworkPart::kHead; }},
}};

/// The choice at work.
class Choice {
 public:
  Choice(std::span<const TrainedNetwork> networks, Parameters<float>& parameters)
      : parameters_(parameters), kinds_(static_cast<std::size_t>(parameters.count())) {
    std::vector<bool> known(kinds_.size());
    for (const TrainedNetwork& network : networks) {
      layers_ = std::max(layers_, network.layers);
      network.map->for_each([&](Role role, bool bias, Index layer, Index, Index parameter) {
        const auto at = static_cast<std::size_t>(parameter);
        if (known[at]) return;
        known[at] = true;
        kinds_[at] = {role, network_part(role), bias, layer, network.layers};
      });
    }
    // Of no design: gates and what else a loss has.
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (!known[i]) kinds_[i].bias = name(i).ends_with(".bias");
    }
  }

  void run(const TrainedOptions& options) {
    std::vector<bool> trained(kinds_.size(), options.train.empty());
    for (const std::string& pattern : options.train) {
      for (const std::size_t i : matching("train", pattern)) trained[i] = true;
    }
    for (const std::string& pattern : options.freeze) {
      for (const std::size_t i : matching("freeze", pattern)) trained[i] = false;
    }
    for (std::size_t i = 0; i < trained.size(); ++i)
      trained[i] = trained[i] && parameters_[static_cast<Index>(i)].trained;
    if (std::ranges::find(trained, true) == trained.end()) {
      throw UsageError(
          fmt::format("{} and {} leave nothing to train", field("train"), field("freeze")));
    }
    const std::vector<double> rates = rates_of(options, trained);
    for (std::size_t i = 0; i < trained.size(); ++i)
      parameters_.set_training(static_cast<Index>(i), trained[i], rates[i]);
  }

 private:
  /// As in a file; what a file stacks in one tensor has one name.
  std::string_view name(std::size_t i) const {
    const std::string_view whole = parameters_[static_cast<Index>(i)].name;
    return whole.substr(0, whole.find('#'));
  }

  template <class Test>
  std::vector<std::size_t> all(const Test& test) const {
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (test(i)) out.push_back(i);
    }
    return out;
  }

  /// The tensors of a pattern, at least one.
  std::vector<std::size_t> matching(std::string_view option, std::string_view pattern) const {
    if (pattern.starts_with(kLayerWord)) return of_layers(option, pattern);
    const auto* const word =
        std::ranges::find(kWords, pattern, [](const auto& w) { return w.first; });
    std::vector<std::size_t> found =
        word != kWords.end() ? all([&](std::size_t i) { return word->second(kinds_[i]); })
                             : all([&](std::size_t i) { return matches_glob(pattern, name(i)); });
    if (!found.empty()) return found;
    if (word != kWords.end()) {
      throw UsageError(
          fmt::format("{} {} matches no tensor of the model; remove it", field(option), pattern));
    }
    std::string words;
    for (const auto& [known, test] : kWords) words += fmt::format("{}, ", known);
    throw UsageError(
        fmt::format("{}: '{}' matches no tensor, expected tensor names with * for any "
                    "text, or one of {}layer:N, layer:A-B",
                    field(option), escape(pattern), words));
  }

  std::vector<std::size_t> of_layers(std::string_view option, std::string_view pattern) const {
    std::string_view rest = pattern.substr(kLayerWord.size());
    const auto low = take_number<Index>(rest);
    auto high = low;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      high = take_number<Index>(rest);
    }
    if (!low || !high || !rest.empty() || *low < 0 || *high < *low || *high >= layers_) {
      throw UsageError(fmt::format("{}: found '{}', expected layer:N or layer:A-B, from 0 to {}",
                                   field(option), escape(pattern), layers_ - 1));
    }
    return all([&](std::size_t i) {
      return kinds_[i].part == NetworkPart::kLayers && kinds_[i].layer >= *low &&
             kinds_[i].layer <= *high;
    });
  }

  std::vector<double> rates_of(const TrainedOptions& options,
                               const std::vector<bool>& trained) const {
    std::vector<double> rates(kinds_.size(), 1.0);
    for (const std::string& one : options.rate_of) {
      const auto [pattern, value] = split_at_last(one, '=');
      const auto factor = value ? parse_number<double>(*value) : std::nullopt;
      if (!factor || !(*factor > 0 && *factor <= kMostRate)) {
        throw UsageError(
            fmt::format("{}: found '{}', expected PATTERN=FACTOR with a factor "
                        "of more than 0, for example embeddings=0.1",
                        field("rate_of"), escape(one)));
      }
      bool any = false;
      for (const std::size_t i : matching("rate_of", pattern)) {
        rates[i] = *factor;
        any = any || trained[i];
      }
      if (!any) {
        throw UsageError(
            fmt::format("{} {} has no effect: none of these tensors is trained; remove it",
                        field("rate_of"), escape(one)));
      }
    }
    for (std::size_t i = 0; options.layer_decay && i < rates.size(); ++i)
      rates[i] *= std::pow(*options.layer_decay, static_cast<double>(depth_of(kinds_[i])));
    return rates;
  }

  /// How far below the head it stands.
  static Index depth_of(const TensorKind& kind) {
    switch (kind.part) {
      case NetworkPart::kEmbeddings: return kind.layers + 1;
      case NetworkPart::kLayers: return kind.layers - kind.layer;
      default: return 0;
    }
  }

  Parameters<float>& parameters_;
  std::vector<TensorKind> kinds_;  ///< one a parameter
  Index layers_ = 0;               ///< of the deepest network
};

}  // namespace

void choose_trained(const TrainedOptions& options, std::span<const TrainedNetwork> networks,
                    Parameters<float>& parameters) {
  if (options.layer_decay && !(*options.layer_decay > 0 && *options.layer_decay <= 1)) {
    throw UsageError(fmt::format("{}: found {}, expected more than 0 and at most 1",
                                 field("layer_decay"), *options.layer_decay));
  }
  Choice(networks, parameters).run(options);
}

Index count_trained(const Parameters<float>& parameters) {
  Index count = 0;
  for (Index i = 0; i < parameters.count(); ++i) {
    if (parameters[i].trained) count += parameters[i].size();
  }
  return count;
}

}  // namespace masque::train
