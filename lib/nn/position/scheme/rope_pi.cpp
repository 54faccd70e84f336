// rope_pi: position interpolation, places divided by `factor` = longer / trained length.
#include "nn/position/rotary_scaling.hpp"
#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

const PositionRegistration kRegistration(
    "rope_pi", [](NamedArguments& spelled) -> std::unique_ptr<PositionScheme> {
      const RotarySettings settings = read_rotary(spelled);
      const double factor = spelled.number("factor", 8, 1, 1e6);
      return std::make_unique<RotaryScheme>(settings, "Chen et al. 2023, arXiv:2306.15595",
                                            [factor](std::span<double> frequencies) {
                                              interpolate_frequencies(factor, frequencies);
                                            });
    });

}  // namespace

}  // namespace masque::nn
