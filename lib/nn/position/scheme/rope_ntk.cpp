// rope_ntk: the base times factor^(d/(d − 2)), so that the lowest frequency is divided by `factor`
// = longer / trained length and the highest stays.
#include "nn/position/rotary_scaling.hpp"
#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

const PositionRegistration kRegistration(
    "rope_ntk", [](NamedArguments& spelled) -> std::unique_ptr<PositionScheme> {
      const RotarySettings settings = read_rotary(spelled);
      const double factor = spelled.number("factor", 8, 1, 1e6);
      return std::make_unique<RotaryScheme>(
          settings, "bloc97 2023 (NTK-aware RoPE); Su 2023, kexue.fm/archives/9675",
          [factor](std::span<double> frequencies) { scale_ntk(factor, frequencies); });
    });

}  // namespace

}  // namespace masque::nn
