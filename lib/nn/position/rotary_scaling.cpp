#include "nn/position/rotary_scaling.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace masque::nn {

void interpolate_frequencies(double factor, std::span<double> frequencies) {
  for (double& f : frequencies) f /= factor;
}

void scale_ntk(double factor, std::span<double> frequencies) {
  const double last = static_cast<double>(frequencies.size()) - 1;
  for (std::size_t t = 1; t < frequencies.size(); ++t) {
    frequencies[t] *= std::pow(factor, -static_cast<double>(t) / last);
  }
}

void scale_ntk_mixed(double factor, double power, std::span<double> frequencies) {
  const double a = std::log(factor) / std::pow(static_cast<double>(frequencies.size()), power);
  for (std::size_t t = 0; t < frequencies.size(); ++t) {
    frequencies[t] *= std::exp(-a * std::pow(static_cast<double>(t + 1), power));
  }
}

void YarnScaling::scale(std::span<double> frequencies) const {
  for (double& f : frequencies) {
    const double turns = f * length / (2 * std::numbers::pi);
    const double kept = fast == slow ? static_cast<double>(turns > fast)
                                     : std::clamp((turns - slow) / (fast - slow), 0.0, 1.0);
    f *= kept + (1 - kept) / factor;
  }
}

double YarnScaling::amplitude() const { return 1 + 0.1 * std::log(factor); }

}  // namespace masque::nn
