// rope_ntk_mixed: digits of mixed radix. θ_t is divided by exp(a (t + 1)^b), where a makes the last
// one `factor` = longer / trained length, so that high frequencies move less than with rope_ntk.
#include <cmath>

#include "nn/position/rotary_terms.hpp"

namespace masque::nn {

namespace {

void scale_mixed(double factor, double power, std::span<double> frequencies) {
  const double a = std::log(factor) / std::pow(static_cast<double>(frequencies.size()), power);
  for (std::size_t t = 0; t < frequencies.size(); ++t) {
    frequencies[t] *= std::exp(-a * std::pow(static_cast<double>(t + 1), power));
  }
}

const PositionRegistration kRegistration(
    "rope_ntk_mixed", [](Spelled& spelled) -> std::unique_ptr<PositionScheme> {
      const RotarySettings settings = read_rotary(spelled);
      const double factor = spelled.number("factor", 8, 1, 1e6);
      const double power = spelled.number("power", 0.625, 0, 8);
      return std::make_unique<RotaryScheme>(
          settings, "Su 2023, kexue.fm/archives/9706",
          [=](std::span<double> frequencies) { scale_mixed(factor, power, frequencies); });
    });

}  // namespace

}  // namespace masque::nn
