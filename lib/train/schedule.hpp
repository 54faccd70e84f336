// The learning rate of each step.
#pragma once

#include <cstdint>
#include <string_view>

namespace masque::train {

enum class Decay { kLinear, kCosine, kConstant };

/// "linear", "cosine", "constant". Throws UsageError.
Decay parse_decay(std::string_view name);
std::string_view decay_name(Decay decay);

/// Rises linearly over the first steps, then falls to `floor` at the last.
struct Schedule {
  double learning_rate = 1e-3;  ///< the largest
  std::int64_t steps = 1;
  std::int64_t warmup = 0;
  Decay decay = Decay::kLinear;
  double floor = 0;  ///< share of the largest that is left at the end

  /// Of update `step`, from 1.
  double at(std::int64_t step) const;
};

}  // namespace masque::train
