#include "train/network/deepnorm.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace masque::train {

namespace {

/// α = (2L)^scale, β = (gain_layers · L)^gain.
struct Constants {
  std::string_view name;
  double scale;
  double gain_layers, gain;
};

constexpr std::array<Constants, 4> kConstants{{{"deepnorm", 0.25, 8, -0.25},
                                               {"deepnorm_su", 0.5, 2, -0.5},
                                               {"deepnorm_su_sgd", 0.25, 2, -0.25},
                                               {"deepnorm_su_lamb", 0, 2, -0.5}}};

}  // namespace

DeepNorm deepnorm(std::string_view norm_placement, Index layers) {
  const auto found = std::ranges::find(kConstants, norm_placement, &Constants::name);
  if (found == kConstants.end()) return {};
  const auto count = static_cast<double>(layers);
  return {std::pow(2 * count, found->scale), std::pow(found->gain_layers * count, found->gain)};
}

bool is_deepnorm(std::string_view norm_placement) {
  return std::ranges::find(kConstants, norm_placement, &Constants::name) != kConstants.end();
}

}  // namespace masque::train
