// rope_ntk_mixed: digits of mixed radix, so that high frequencies move less than with rope_ntk.
#include "nn/position/rotary_scaling.hpp"
#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

const PositionRegistration kRegistration(
    "rope_ntk_mixed", [](NamedArguments& spelled) -> std::unique_ptr<PositionScheme> {
      const RotarySettings settings = read_rotary(spelled);
      const double factor = spelled.number("factor", 8, 1, 1e6);
      const double power = spelled.number("power", 0.625, 0, 8);
      return std::make_unique<RotaryScheme>(
          settings, "Su 2023, kexue.fm/archives/9706",
          [=](std::span<double> frequencies) { scale_ntk_mixed(factor, power, frequencies); });
    });

}  // namespace

}  // namespace masque::nn
