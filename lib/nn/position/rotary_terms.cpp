#include "nn/position/rotary_terms.hpp"

#include <array>

namespace masque::nn {

RotarySettings rotary_settings(NamedArguments& arguments) {
  static constexpr std::array<std::string_view, 2> kLayouts = {"adjacent", "half"};
  RotarySettings settings;
  if (arguments.choice("layout", kLayouts[0], kLayouts) == kLayouts[1]) {
    settings.layout = kernel::RotaryLayout::kHalf;
  }
  settings.base = arguments.number("base", settings.base, 1, 1e12);
  return settings;
}

PositionFacts RotaryScheme::facts() const {
  PositionFacts facts;
  facts.query_key = true;
  return facts;
}

VariantInfo RotaryScheme::info() const { return describe_position("", "4 n d", scaling_.source); }

}  // namespace masque::nn
