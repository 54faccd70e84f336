// rope_yarn: by how often a pair turns in the trained length, r_t = θ_t · length / 2π: pairs that
// turn more than beta_fast times stay, those below beta_slow are divided by `factor`, between them
// a blend that is linear in r_t. Scores grow by (1 + 0.1 log factor)². Loadable models
// (config.json) follow transformers instead, whose blend is linear in t.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

struct Yarn {
  double factor = 8;
  double length = 512;
  double fast = 32;
  double slow = 1;

  void scale(std::span<double> frequencies) const {
    for (double& f : frequencies) {
      const double turns = f * length / (2 * std::numbers::pi);
      const double kept = fast == slow ? static_cast<double>(turns > fast)
                                       : std::clamp((turns - slow) / (fast - slow), 0.0, 1.0);
      f *= kept + (1 - kept) / factor;
    }
  }
};

const PositionRegistration kRegistration(
    "rope_yarn", [](Spelled& spelled) -> std::unique_ptr<PositionScheme> {
      const RotarySettings settings = read_rotary(spelled);
      Yarn yarn;
      yarn.factor = spelled.number("factor", yarn.factor, 1, 1e6);
      yarn.length = spelled.number("length", yarn.length, 1, 1e9);
      yarn.fast = spelled.number("beta_fast", yarn.fast, 0, 1e9);
      yarn.slow = spelled.number("beta_slow", yarn.slow, 0, yarn.fast);
      return std::make_unique<RotaryScheme>(
          settings, "Peng et al. 2023, arXiv:2309.00071",
          [yarn](std::span<double> frequencies) { yarn.scale(frequencies); },
          1 + 0.1 * std::log(yarn.factor));
    });

}  // namespace

}  // namespace masque::nn
