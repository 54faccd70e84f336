// Frequencies of rotary positions changed for texts that are `factor` times longer than those of
// training: what the schemes rope_pi, rope_ntk, … and the treatments of loaded models share.
#pragma once

#include <span>

namespace masque::nn {

/// Position interpolation: every θ_t divided by `factor`. Chen et al. 2023, arXiv:2306.15595.
void interpolate_frequencies(double factor, std::span<double> frequencies);

/// A larger base: θ_t divided by factor^(t / (pairs − 1)), so that the first one stays and the last
/// is divided by `factor`. bloc97 2023 (NTK-aware RoPE); Su 2023, kexue.fm/archives/9675.
void scale_ntk(double factor, std::span<double> frequencies);

/// Digits of mixed radix: θ_t divided by exp(a (t + 1)^power), where a makes the last divisor
/// `factor`. Su 2023, kexue.fm/archives/9706.
void scale_ntk_mixed(double factor, double power, std::span<double> frequencies);

/// By how often a pair turns in the trained length, r_t = θ_t · length / 2π: pairs that turn more
/// than `fast` times stay, those below `slow` are divided by `factor`, between them a blend that is
/// linear in r_t. Peng et al. 2023, arXiv:2309.00071.
struct YarnScaling {
  double factor = 8;
  double length = 512;
  double fast = 32;
  double slow = 1;  ///< at most `fast`

  void scale(std::span<double> frequencies) const;
  /// Of cosine and sine: 1 + 0.1 log factor. Scores grow by its square.
  double amplitude() const;
};

}  // namespace masque::nn
