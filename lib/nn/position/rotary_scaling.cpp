#include "nn/position/rotary_scaling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "base/string/named_arguments.hpp"

namespace masque::nn {

namespace {

constexpr std::string_view kPrefix = "rope_";

void divide(const RotaryArguments& given, std::span<double> frequencies) {
  for (double& f : frequencies) f /= given.factor;
}

/// θ_t / factor^(t / (pairs − 1)): a larger base, so that the first one stays and the last is
/// divided by `factor`.
void enlarge_base(const RotaryArguments& given, std::span<double> frequencies) {
  const double last = static_cast<double>(frequencies.size()) - 1;
  for (std::size_t t = 1; t < frequencies.size(); ++t) {
    frequencies[t] *= std::pow(given.factor, -static_cast<double>(t) / last);
  }
}

/// θ_t / exp(a (t + 1)^power), where a makes the last divisor `factor`: digits of mixed radix, so
/// that high frequencies move less than with a larger base.
void mix_radix(const RotaryArguments& given, std::span<double> frequencies) {
  const double a =
      std::log(given.factor) / std::pow(static_cast<double>(frequencies.size()), given.power);
  for (std::size_t t = 0; t < frequencies.size(); ++t) {
    frequencies[t] *= std::exp(-a * std::pow(static_cast<double>(t + 1), given.power));
  }
}

/// By how often a pair rotates in the trained length, r_t = θ_t · length / 2π: pairs that rotate
/// more than beta_fast times stay, those below beta_slow are divided by `factor`, between them a
/// blend that is linear in r_t. Configs of transformers blend linearly in t
/// (model/rotary_config.hpp).
void blend_by_rotations(const RotaryArguments& given, std::span<double> frequencies) {
  const double fast = given.beta_fast;
  const double slow = given.beta_slow;
  for (double& f : frequencies) {
    const double rotations = f * given.length / (2 * std::numbers::pi);
    const double kept = fast == slow ? static_cast<double>(rotations > fast)
                                     : std::clamp((rotations - slow) / (fast - slow), 0.0, 1.0);
    f *= kept + (1 - kept) / given.factor;
  }
}

constexpr RotaryParameter kFactor{"factor", &RotaryArguments::factor, 1, 1e6};
constexpr std::array kFactorAlone{kFactor};
constexpr std::array kMixed{kFactor, RotaryParameter{"power", &RotaryArguments::power, 0, 8}};
constexpr std::array kYarn{
    kFactor, RotaryParameter{"length", &RotaryArguments::length, 1, 1e9},
    RotaryParameter{"beta_fast", &RotaryArguments::beta_fast, 0, 1e9},
    RotaryParameter{"beta_slow", &RotaryArguments::beta_slow, 0, 1e9, &RotaryArguments::beta_fast}};

constexpr std::array<RotaryScaling, 5> kScalings{{
    {.name = "rope",
     .effect = "pairs of features rotated by position · θ_t",
     .source = "Su et al. 2021, arXiv:2104.09864"},
    {.name = "rope_pi",
     .effect = "positions divided by factor",
     .source = "Chen et al. 2023, arXiv:2306.15595",
     .parameters = kFactorAlone,
     .scale = divide},
    {.name = "rope_ntk",
     .effect = "base times factor^(d/(d-2))",
     .source = "bloc97 2023 (NTK-aware RoPE); Su 2023, kexue.fm/archives/9675",
     .parameters = kFactorAlone,
     .scale = enlarge_base},
    {.name = "rope_ntk_mixed",
     .effect = "frequencies divided by exp(a t^power)",
     .source = "Su 2023, kexue.fm/archives/9706",
     .parameters = kMixed,
     .scale = mix_radix},
    {.name = "rope_yarn",
     .effect = "frequencies blended by rotations within the trained length",
     .source = "Peng et al. 2023, arXiv:2309.00071",
     .parameters = kYarn,
     .scale = blend_by_rotations,
     .amplitude = [](const RotaryArguments& given) { return 1 + 0.1 * std::log(given.factor); }},
}};

}  // namespace

void RotaryParameter::read(NamedArguments& arguments, RotaryArguments& to) const {
  const double largest = at_most == nullptr ? most : to.*at_most;
  to.*value = arguments.number(name, RotaryArguments{}.*value, least, largest);
}

std::string_view RotaryScaling::method() const {
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : std::string_view();
}

std::span<const RotaryScaling> rotary_scalings() { return kScalings; }

const RotaryScaling& rotary_scaling(std::string_view name) {
  const auto found = std::ranges::find(kScalings, name, &RotaryScaling::name);
  MASQUE_CHECK(found != kScalings.end());
  return *found;
}

}  // namespace masque::nn
