// Tokens drawn from a model's probabilities.
#pragma once

#include <vector>

#include "base/types.hpp"

namespace masque::train {

/// A draw for each wanted row of examples, in their order, by kernel::vocabulary_loss.
struct Sampling {
  std::vector<double> uniforms;  ///< in [0, 1), one a row
  std::vector<TokenId> tokens;   ///< made as long by the network that draws
  std::vector<double> losses;    ///< −log p of the drawn tokens, where keeps_losses; made as long
  bool keeps_losses = false;     ///< whether `losses` are wanted
};

}  // namespace masque::train
