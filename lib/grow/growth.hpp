// The request for a larger model, and the report about it.
#pragma once

#include <string>
#include <vector>

#include "grow/depth_rules.hpp"
#include "grow/width_rules.hpp"

namespace masque::grow {

/// How much larger a model is to become, and by which rules.
struct GrowthRequest {
  double factor = 1;  ///< of hidden size, heads and intermediate size; 1: the width stays
  WidthRule width = WidthRule::kEqual;     ///< how units are copied; used if `factor` > 1
  Index layers = 0;                        ///< of the deeper model, all; 0: the depth stays
  DepthRule depth = DepthRule::kIdentity;  ///< where layers are added; used if `layers` > 0
  /// Standard deviation of normal noise on the matrices of layers that are copies, as a share of
  /// the root mean square of each of their rows. Of a wider model all of them, else those of added
  /// layers.
  double noise = 0;
  std::uint64_t seed = 0;  ///< of width rules that draw, and of noise
};

/// How the larger model's function relates to the small one's.
enum class Sameness {
  kExact,    ///< the same
  kRounded,  ///< but for the rounding of numbers that are stored
  kEpsilon,  ///< but for the epsilon of norms that normalize once more, and rounding
  kOther,    ///< another one
};

/// What a growth changes.
struct GrowthReport {
  model::Design before,                  ///< of the small model
      after;                             ///< of the larger one
  std::uint64_t grown = 0;               ///< tensors with other numbers or another shape
  std::uint64_t added = 0;               ///< tensors of added layers
  std::uint64_t kept = 0;                ///< tensors as they were
  Sameness sameness = Sameness::kExact;  ///< of the two functions, by the strongest change
  bool rounded = false;  ///< numbers that are stored are rounded, besides what `sameness` says
  /// The largest error of rounding to the types of the model's tensors: 6e-8 of f32.
  double unit_roundoff = 0;
  std::vector<std::string> notes;  ///< for people: tensors and files that are left out
};

}  // namespace masque::grow
