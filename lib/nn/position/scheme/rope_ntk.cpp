// rope_ntk: the base times factor^(d/(d − 2)), so that the lowest frequency is divided by `factor`
// = longer / trained length and the highest stays.
#include <cmath>

#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

/// A larger base divides θ_t by factor^(2t/(d − 2)) = factor^(t/(pairs − 1)).
void scale_base(double factor, std::span<double> frequencies) {
  const double last = static_cast<double>(frequencies.size()) - 1;
  for (std::size_t t = 1; t < frequencies.size(); ++t) {
    frequencies[t] *= std::pow(factor, -static_cast<double>(t) / last);
  }
}

const PositionRegistration kRegistration(
    "rope_ntk", [](Spelled& spelled) -> std::unique_ptr<PositionScheme> {
      const RotarySettings settings = read_rotary(spelled);
      const double factor = spelled.number("factor", 8, 1, 1e6);
      return std::make_unique<RotaryScheme>(
          settings, "bloc97 2023 (NTK-aware RoPE); Su 2023, kexue.fm/archives/9675",
          [factor](std::span<double> frequencies) { scale_base(factor, frequencies); });
    });

}  // namespace

}  // namespace masque::nn
