// The zero probe of a position scheme and a normalizer, on layers of random weights: whether
// positions can be distinguished if all tokens are the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evaluate/states/state_probe.hpp"

namespace masque::evaluate {

/// What zero_probe() runs.
struct ZeroSchemeRequest {
  std::string position = "none";       ///< as nn::parse_position reads it
  std::string normalizer = "softmax";  ///< as nn::parse_normalizer reads it
  bool ends = false;  ///< another token first and last, as [CLS] and [SEP]; they are not compared
  Index length = 64;  ///< tokens, those of `ends` included
  Index layers = 3;   ///< number of layers of attention
  Index hidden_size = 32;  ///< width of the states
  Index heads = 4;         ///< a divisor of hidden_size
  std::uint64_t seed = 0;  ///< seed of tokens, weights and parameters
};

/// Runs the layers of `request`, attention without feed-forward parts, x ← norm(x + o W), in
/// double: no masks, normal random weights, root-mean-square norms. The scheme changes the input
/// once and has the same parameters in every layer: their initial values plus random positive
/// numbers, because many initial values have no effect. Row 0 is the input after the scheme.
/// Schemes that act only on attention scores give spreads of rounding size (≤ 1e-12) under
/// normalizers with rows that sum to 1: kexue.fm/archives/9105. Throws UsageError for unknown
/// names, arguments and shapes.
std::vector<ZeroRow> zero_probe(const ZeroSchemeRequest& request);

}  // namespace masque::evaluate
