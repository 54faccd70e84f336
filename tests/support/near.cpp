#include "support/near.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace masque::test {

std::string far_off(std::span<const double> found, std::span<const double> expected,
                    double absolute, double relative) {
  if (found.size() != expected.size()) {
    return fmt::format("{} values, expected {}", found.size(), expected.size());
  }
  double worst = 1;
  std::size_t at = found.size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double a = found[i];
    const double b = expected[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    double ratio = std::abs(a - b) / (absolute + relative * std::abs(b));
    if (!std::isfinite(ratio)) ratio = std::numeric_limits<double>::infinity();
    if (ratio > worst) {
      worst = ratio;
      at = i;
    }
  }
  if (at == found.size()) return {};
  return fmt::format("[{}]: found {}, expected {}, {} times the tolerance", at, found[at],
                     expected[at], worst);
}

}  // namespace masque::test
