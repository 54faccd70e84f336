#include "train/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"

namespace masque::train {

std::string_view decay_name(Decay decay) {
  switch (decay) {
    case Decay::kLinear: return "linear";
    case Decay::kCosine: return "cosine";
    case Decay::kConstant: break;
  }
  return "constant";
}

Decay parse_decay(std::string_view name) {
  for (const Decay decay : {Decay::kLinear, Decay::kCosine, Decay::kConstant}) {
    if (decay_name(decay) == name) return decay;
  }
  throw UsageError(
      fmt::format("decay '{}', expected linear, cosine or constant", escape(std::string(name))));
}

double Schedule::at(std::int64_t step) const {
  if (step <= warmup) {
    return learning_rate * static_cast<double>(step) / static_cast<double>(warmup);
  }
  if (decay == Decay::kConstant || steps <= warmup) return learning_rate;
  // 1 at the first step behind the warm-up, 0 behind the last.
  const double left = std::clamp(
      static_cast<double>(steps - step + 1) / static_cast<double>(steps - warmup), 0.0, 1.0);
  const double shape =
      decay == Decay::kLinear ? left : 0.5 * (1 - std::cos(std::numbers::pi * left));
  return learning_rate * (floor + (1 - floor) * shape);
}

}  // namespace masque::train
