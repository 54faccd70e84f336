// DeepNorm: the scale of the residual and the gain of initial weights that let deep post-norm
// models train. x ← norm(α x + f(x)); weights of values, output and feed-forward layers, and
// the whole input projection of a gated unit, start β times as large; queries and keys keep gain 1.
#pragma once

#include <string_view>

#include "base/types.hpp"

namespace masque::train {

/// α and β. A gain of 0: the default initialization.
struct DeepNorm {
  double residual_scale = 1;  ///< α
  double gain = 0;            ///< β
};

/// Returns the constants of `norm_placement` for L = `layers`. "deepnorm": α = (2L)^(1/4), β =
/// (8L)^(−1/4), of encoders and decoders alone (Wang 2022, arXiv:2203.00555, table 1). Of Su 2022,
/// https://kexue.fm/archives/8978, by the optimizer: "deepnorm_su_sgd": α = (2L)^(1/4), β =
/// (2L)^(−1/4); "deepnorm_su", for Adam: α = (2L)^(1/2), β = (2L)^(−1/2); "deepnorm_su_lamb": α =
/// 1, β = (2L)^(−1/2). Any other placement: 1 and 0.
DeepNorm deepnorm(std::string_view norm_placement, Index layers);

/// Whether `norm_placement` is one of these.
bool is_deepnorm(std::string_view norm_placement);

}  // namespace masque::train
