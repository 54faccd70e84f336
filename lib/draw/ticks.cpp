#include "draw/ticks.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include <fmt/format.h>

namespace masque::draw {

Index round_step(double minimum) {
  Index power = 1;
  while (true) {
    for (const Index step : {power, 2 * power, 5 * power}) {
      if (static_cast<double>(step) >= minimum) return step;
    }
    power *= 10;
  }
}

std::string number_text(double value) {
  return fmt::format("{:.10g}", value == 0 ? 0.0 : value);  // never -0
}

std::string legend_number(double value) { return fmt::format("{:.3g}", value == 0 ? 0.0 : value); }

std::vector<Tick> linear_ticks(double low, double high, int most) {
  if (!(low < high) || !std::isfinite(high - low)) return {};
  const double rough = (high - low) / std::max(1, most);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  std::vector<Tick> ticks;
  const double slack = 1e-9 * step;  // 3 · 0.1 is not 0.3
  const double first = std::ceil((low - slack) / step);
  for (int i = 0; i <= most + 1; ++i) {
    const double value = (first + i) * step;
    if (value > high + slack || (i > 0 && value <= ticks.back().value)) break;
    ticks.push_back({value, number_text(value)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(double low, double high, int most) {
  if (!(low > 0 && low < high) || !std::isfinite(high)) return {};
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const auto find = [&](std::initializer_list<double> factors, Index skip) {
    std::vector<Tick> ticks;
    for (int e = first; e <= last; ++e) {
      if (e % skip != 0) continue;
      for (const double factor : factors) {
        const double value = factor * std::pow(10, e);
        if (value < low * (1 - 1e-9) || value > high * (1 + 1e-9)) continue;
        ticks.push_back({value, number_text(value)});
      }
    }
    return ticks;
  };
  std::vector<Tick> ticks = find({1, 2, 5}, 1);
  if (static_cast<int>(ticks.size()) > most) {
    ticks = find({1}, round_step(static_cast<double>(last - first) / std::max(1, most)));
  }
  return ticks.size() < 2 ? linear_ticks(low, high, most) : ticks;
}

}  // namespace masque::draw
