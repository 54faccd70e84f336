// Tokens drawn from a model's probabilities.
#pragma once

#include <span>
#include <vector>

#include "base/types.hpp"

namespace masque::train {

/// A draw for each wanted row of examples, in their order.
struct Sampling {
  std::vector<double> uniforms;  ///< in [0, 1), one a row
  std::vector<TokenId> tokens;   ///< made as long by the network that draws
};

/// The token at which the sum of softmax(logits), from token 0 on, first exceeds `uniform`
/// (in [0, 1)): by inversion, temperature 1. Logits become numbers in their proportion. T is float
/// or double. O(logits).
template <class T>
TokenId sample_token(std::span<T> logits, double uniform);

}  // namespace masque::train
