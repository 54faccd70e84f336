#include "model/bent_rotary.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "model/variants.hpp"

namespace masque::model {

namespace {

// Checkpoints of transformers have frequencies that were made in float.
constexpr double kTolerance = 1e-6;

bool near(double a, double b) { return std::abs(a - b) <= kTolerance * std::abs(b); }

/// The base of plain frequencies θ_t = base^(−2t/size); a whole number where one will do.
std::optional<double> base_of(const std::vector<double>& frequencies) {
  const auto size = static_cast<Index>(2 * frequencies.size());
  // One pair turns by 1 whatever the base.
  double base = 10000;
  if (frequencies.size() > 1) base = std::pow(frequencies[1], -static_cast<double>(size) / 2);
  if (!(base >= 1 && base <= 1e12)) return std::nullopt;
  for (const double guess : {std::round(base), base}) {
    const std::vector<double> plain = kernel::rotary_frequencies(guess, size);
    if (std::ranges::equal(frequencies, plain, near)) return guess;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> rotary_arguments(TreatedPositions& positions) {
  positions.plain_rotary();
  const Design& design = positions.design;
  if (design.position != PositionType::kRotary) return std::nullopt;
  const RotaryDesign& rotary = design.layers.front().rotary;
  for (const LayerDesign& layer : design.layers) {
    if (layer.rotary != rotary) return std::nullopt;
  }
  const Index size = position_shape(design).head_size;
  const Index rotated = 2 * std::ssize(rotary.frequencies);
  if (rotary.values || rotary.factor != 1 || rotated == 0 ||
      !near(design.attention_scale, 1 / std::sqrt(static_cast<double>(size))))
    return std::nullopt;
  const auto base = base_of(rotary.frequencies);
  if (!base) return std::nullopt;
  return fmt::format("layout={}, base={}, size={}",
                     rotary.layout == kernel::RotaryLayout::kHalf ? "half" : "adjacent", *base,
                     rotated);
}

void replace_rotary_with_rerope(const std::string& scheme, TreatedPositions& positions) {
  Design& design = positions.design;
  design.position = PositionType::kNone;
  design.variants.position = scheme;
  design.attention_scale = position_scheme(design)->scale(position_shape(design));
}

}  // namespace masque::model
