// The zero probe of a position scheme and a normalizer, on layers of random weights: can positions
// be distinguished where all tokens are the same?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/states/state_probe.hpp"

namespace masque::probe {

struct ZeroSchemeRequest {
  std::string position = "none";       ///< as nn::parse_position reads it
  std::string normalizer = "softmax";  ///< as nn::parse_normalizer reads it
  bool ends = false;  ///< another token first and last, as [CLS] and [SEP]; they are not compared
  Index length = 64;  ///< tokens, those of `ends` included
  Index layers = 3;
  Index hidden_size = 32;
  Index heads = 4;  ///< a divisor of hidden_size
  std::uint64_t seed = 0;
};

/// Layers of attention alone, x ← norm(x + o W): no masks, every weight normal, norms by root mean
/// square, in double. The scheme changes the input once, and has the same parameters in every
/// layer: where they start, moved by random positive numbers, as many start where they say nothing.
/// Row 0 is the input after the scheme. Schemes that act on scores alone leave spreads of rounding
/// (≤ 1e-12) under normalizers whose rows add up to 1: kexue.fm/archives/9105. Throws UsageError
/// for names, arguments and shapes that do not fit.
std::vector<ZeroRow> zero_probe(const ZeroSchemeRequest& request);

}  // namespace masque::probe
