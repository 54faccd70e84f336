// leaky_rerope: RoPE whose distance grows `factor` times slower beyond a window.
#include "nn/position/rerope_terms.hpp"

namespace masque::nn {

namespace {

const PositionRegistration kRegistration(
    "leaky_rerope", [](NamedArguments& spelled) -> std::unique_ptr<PositionScheme> {
      RotarySettings settings = read_rotary(spelled);
      settings.size = spelled.count("size", 0, 0, Index{1} << 20);
      const Index window = spelled.count("window", 256, 0, Index{1} << 40);
      const double factor = spelled.number("factor", 8, 1, 1e6);
      return std::make_unique<ReropeScheme>(settings, window, 1 / factor);
    });

}  // namespace

}  // namespace masque::nn
