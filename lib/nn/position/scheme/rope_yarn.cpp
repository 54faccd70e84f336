// rope_yarn: pairs that turn often within the trained length stay, slow ones are divided by
// `factor`; scores grow. Loadable models (config.json) follow transformers instead, whose blend is
// linear in t.
#include "nn/position/rotary_scaling.hpp"
#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

const PositionRegistration kRegistration(
    "rope_yarn", [](NamedArguments& spelled) -> std::unique_ptr<PositionScheme> {
      const RotarySettings settings = read_rotary(spelled);
      YarnScaling yarn;
      yarn.factor = spelled.number("factor", yarn.factor, 1, 1e6);
      yarn.length = spelled.number("length", yarn.length, 1, 1e9);
      yarn.fast = spelled.number("beta_fast", yarn.fast, 0, 1e9);
      yarn.slow = spelled.number("beta_slow", yarn.slow, 0, yarn.fast);
      return std::make_unique<RotaryScheme>(
          settings, "Peng et al. 2023, arXiv:2309.00071",
          [yarn](std::span<double> frequencies) { yarn.scale(frequencies); }, yarn.amplitude());
    });

}  // namespace

}  // namespace masque::nn
