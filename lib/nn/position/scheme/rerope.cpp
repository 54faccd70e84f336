// rerope: RoPE whose distance stops growing at a window, ρ = min(|i − j|, w) with its sign.
#include "nn/position/rerope_terms.hpp"

namespace masque::nn {

namespace {

const PositionRegistration kRegistration(
    "rerope", [](NamedArguments& spelled) -> std::unique_ptr<PositionScheme> {
      RotarySettings settings = read_rotary(spelled);
      settings.size = spelled.count("size", 0, 0, Index{1} << 20);
      const Index window = spelled.count("window", 256, 0, Index{1} << 40);
      return std::make_unique<ReropeScheme>(settings, window, 0);
    });

}  // namespace

}  // namespace masque::nn
