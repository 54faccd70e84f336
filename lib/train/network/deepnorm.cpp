#include "train/network/deepnorm.hpp"

#include <cmath>

namespace masque::train {

DeepNorm deepnorm(std::string_view norm_placement, Index layers) {
  const auto count = static_cast<double>(layers);
  if (norm_placement == "deepnorm") return {std::pow(2 * count, 0.25), std::pow(8 * count, -0.25)};
  if (norm_placement == "deepnorm_su") return {std::sqrt(2 * count), 1 / std::sqrt(2 * count)};
  return {};
}

}  // namespace masque::train
