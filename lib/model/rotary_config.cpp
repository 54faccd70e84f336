#include "model/rotary_config.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace masque::model {

namespace {

constexpr Index kLargestHead = 8192;

// Frequencies are made in float, step by step as transformers makes them: its users' models were
// trained and are run with these, and at position 500 the difference would be seen.
using Frequencies = std::vector<float>;

Frequencies plain_frequencies(double theta, Index size) {
  Frequencies frequencies;
  frequencies.reserve(static_cast<std::size_t>(size / 2));
  for (Index i = 0; i < size; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(size);
    frequencies.push_back(1.0F / std::pow(static_cast<float>(theta), exponent));
  }
  return frequencies;
}

/// The wave lengths of Llama 3.1: long ones are divided, short ones kept, the rest blended.
void scale_llama3(const FamilyConfig& rope, double original, Frequencies& frequencies) {
  const double factor = rope.positive("factor", 8);
  const double low = rope.positive("low_freq_factor", 1);
  const double high = rope.positive("high_freq_factor", 4);
  if (!(high > low)) rope.refuse("high_freq_factor", "more than low_freq_factor");
  const auto divisor = static_cast<float>(factor);
  for (float& f : frequencies) {
    const float wave = static_cast<float>(2 * std::numbers::pi) / f;
    if (wave > static_cast<float>(original / low)) {
      f /= divisor;
    } else if (wave >= static_cast<float>(original / high)) {
      const float smooth = (static_cast<float>(original) / wave - static_cast<float>(low)) /
                           static_cast<float>(high - low);
      f = (1 - smooth) * f / divisor + smooth * f;
    }
  }
}

/// YaRN. Returns the factor of cosine and sine. Peng 2023, arXiv:2309.00071.
double scale_yarn(const FamilyConfig& rope, double theta, double original, double longest,
                  Frequencies& frequencies) {
  if (!(theta > 1)) rope.refuse("rope_theta", "more than 1 with yarn");
  const double factor = rope.positive("factor", longest / original);
  const auto attention_scale = [](double scale, double by) {
    return scale <= 1 ? 1.0 : 0.1 * by * std::log(scale) + 1;
  };
  const double mscale = rope.number("mscale", 0);
  const double mscale_all = rope.number("mscale_all_dim", 0);
  const double inferred = mscale != 0 && mscale_all != 0 ? attention_scale(factor, mscale) /
                                                               attention_scale(factor, mscale_all)
                                                         : attention_scale(factor, 1);
  const auto size = static_cast<double>(2 * frequencies.size());
  const auto pair_of = [&](double rotations) {
    return size * std::log(original / (rotations * 2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double low = pair_of(rope.positive("beta_fast", 32));
  double high = pair_of(rope.positive("beta_slow", 1));
  if (rope.flag("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high) high += 0.001;
  for (std::size_t t = 0; t < frequencies.size(); ++t) {
    const float step =
        (static_cast<float>(t) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float kept = 1 - std::clamp(step, 0.0F, 1.0F);
    const float plain = frequencies[t];
    const float divided = 1.0F / (static_cast<float>(factor) / plain);
    frequencies[t] = divided * (1 - kept) + plain * kept;
  }
  return rope.positive("attention_factor", inferred);
}

/// LongRoPE: sets frequencies and factor of `rotary` from `plain` ones.
void scale_longrope(const FamilyConfig& rope, double original, Index longest,
                    const Frequencies& plain, RotaryDesign& rotary) {
  const auto scaled = [&](std::string_view name) {
    const auto factors = rope.numbers(name);
    if (!factors || factors->size() != plain.size())
      rope.refuse(name, fmt::format("a list of {} numbers", plain.size()));
    std::vector<double> frequencies;
    for (std::size_t t = 0; t < plain.size(); ++t)
      frequencies.push_back(1.0F / (static_cast<float>((*factors)[t]) * (1.0F / plain[t])));
    return frequencies;
  };
  rotary.frequencies = scaled("short_factor");
  std::vector<double> longer = scaled("long_factor");
  const double length = static_cast<double>(longest);
  const double factor = rope.positive("factor", length / original);
  const double inferred = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
  rotary.factor = rope.positive("attention_factor", inferred);
  if (longest > 0 && length <= original) return;
  rotary.long_frequencies = std::move(longer);
  rotary.long_from = static_cast<Index>(original);
}

/// The object of the parameters: rope_scaling where there is one, as in transformers; else that of
/// `defaults`: next to it their names mean nothing but for those of RotaryDefaults.
FamilyConfig rope_of(const FamilyConfig& config, const RotaryDefaults& defaults) {
  if (auto scaling = config.object("rope_scaling")) return *std::move(scaling);
  if (auto parameters = config.object(defaults.parameters_name)) return *std::move(parameters);
  return FamilyConfig(
      store::ModelConfig::parse(std::string(defaults.parameters), config.raw().path()));
}

}  // namespace

void check_rotary_size(const FamilyConfig& config, std::string_view name, Index size) {
  if (size % 2 != 0 || size > kLargestHead) {
    config.refuse(
        name, fmt::format("an even number of rotated features in each head, at most {} (found {})",
                          kLargestHead, size));
  }
}

RotaryDesign float_rotary(double theta, Index size) {
  RotaryDesign rotary;
  rotary.float_angles = true;
  const Frequencies frequencies = plain_frequencies(theta, size);
  rotary.frequencies.assign(frequencies.begin(), frequencies.end());
  return rotary;
}

RotaryDesign plain_rotary(kernel::RotaryLayout layout, double theta, Index size) {
  RotaryDesign rotary;
  rotary.layout = layout;
  rotary.frequencies = kernel::rotary_frequencies(theta, size);
  return rotary;
}

std::optional<double> rotary_base(std::span<const double> frequencies, double tolerance) {
  const auto size = static_cast<Index>(2 * frequencies.size());
  // One pair is rotated by 1 whatever the base.
  double base = 10000, of_last = base;
  if (frequencies.size() > 1) {
    base = std::pow(frequencies[1], -static_cast<double>(size) / 2);
    // The errors of frequencies that were made in float grow least here.
    of_last =
        std::pow(frequencies.back(), -static_cast<double>(size) / static_cast<double>(size - 2));
  }
  for (const double guess : {std::round(of_last), std::round(base), base}) {
    const std::vector<double> plain = kernel::rotary_frequencies(guess, size);
    const bool found = std::ranges::equal(frequencies, plain, [tolerance](double a, double b) {
      return std::abs(a - b) <= tolerance * std::abs(b);
    });
    if (found) return guess;
  }
  return std::nullopt;
}

RotaryDesign read_rotary(const FamilyConfig& config, const RotaryDefaults& defaults,
                         Index head_size, Index max_position_embeddings,
                         std::vector<std::string>& notes) {
  const FamilyConfig rope = rope_of(config, defaults);
  const double theta =
      rope.positive("rope_theta", config.positive(defaults.theta_name, defaults.theta));
  const double fallback = defaults.share_name.empty()
                              ? defaults.share
                              : config.positive(defaults.share_name, defaults.share);
  const double share = rope.positive("partial_rotary_factor", fallback);
  const bool has_share = rope.has("partial_rotary_factor");
  const FamilyConfig& of_share = has_share ? rope : config;
  const std::string_view share_name = has_share ? "partial_rotary_factor" : defaults.share_name;
  if (share > 1 || (defaults.fixed_share && share != 1))
    of_share.refuse(share_name, defaults.fixed_share ? "1" : "at most 1");
  const auto size = static_cast<Index>(static_cast<double>(head_size) * share);
  check_rotary_size(of_share, share_name.empty() ? "num_attention_heads" : share_name, size);
  RotaryDesign rotary;
  rotary.float_angles = true;
  Frequencies frequencies = plain_frequencies(theta, size);
  std::string type = rope.text("rope_type", rope.text("type", "default"));
  if (defaults.always_longrope && (type == "su" || type == "yarn")) type = "longrope";
  const auto longest = static_cast<double>(max_position_embeddings);
  const auto of_class = static_cast<double>(defaults.original_length);
  const double in_rope = rope.positive("original_max_position_embeddings", longest);
  const double original =
      config.positive("original_max_position_embeddings", of_class > 0 ? of_class : in_rope);
  if (type == "linear") {
    const auto factor = static_cast<float>(rope.positive("factor", 1));
    for (float& f : frequencies) f /= factor;
  } else if (type == "llama3") {
    scale_llama3(rope, original, frequencies);
  } else if (type == "yarn") {
    rotary.factor = scale_yarn(rope, theta, original, longest, frequencies);
  } else if (type == "dynamic") {
    notes.push_back(fmt::format(
        "rope type dynamic: angles are those of texts of at most {} tokens, the maximum length",
        max_position_embeddings));
  } else if (type == "longrope") {
    scale_longrope(rope, original, max_position_embeddings, frequencies, rotary);
  } else if (type != "default") {
    rope.refuse(rope.has("rope_type") ? "rope_type" : "type",
                "default, linear, dynamic, llama3, yarn or longrope");
  }
  if (type != "longrope") rotary.frequencies.assign(frequencies.begin(), frequencies.end());
  const auto finite = [](const std::vector<double>& all) {
    return std::ranges::all_of(all, [](double f) { return std::isfinite(f); });
  };
  if (!finite(rotary.frequencies) || !finite(rotary.long_frequencies)) {
    const bool inside = rope.has("rope_theta");
    (inside ? rope : config)
        .refuse(inside ? "rope_theta" : defaults.theta_name, "a value with finite frequencies");
  }
  return rotary;
}

}  // namespace masque::model
