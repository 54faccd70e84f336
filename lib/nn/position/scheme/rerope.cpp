// rerope: RoPE whose distance stops growing at a window, ρ = min(|i − j|, w) with its sign.
// leaky_rerope: it grows `factor` times slower there.
#include "nn/position/rerope_terms.hpp"

namespace masque::nn {

namespace {

constexpr std::string_view kLeaky = "leaky_rerope";

std::unique_ptr<PositionScheme> make_rerope(NamedArguments& arguments) {
  RotarySettings settings = rotary_settings(arguments);
  settings.size = arguments.count("size", 0, 0, Index{1} << 20);
  const Index window = arguments.count("window", 256, 0, Index{1} << 40);
  const double slope = arguments.name() == kLeaky ? 1 / arguments.number("factor", 8, 1, 1e6) : 0;
  return std::make_unique<ReropeScheme>(settings, window, slope);
}

const PositionRegistration kRegistration("rerope", make_rerope);
const PositionRegistration kLeakyRegistration(kLeaky, make_rerope);

}  // namespace

}  // namespace masque::nn
