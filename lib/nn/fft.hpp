// The discrete Fourier transform of any length in O(n log n).
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "base/types.hpp"

namespace masque::nn {

/// X_k = Σ_j x_j e^{−2πi jk / n}. Powers of two by halves; other lengths as a convolution of a
/// power of two (Bluestein 1970, doi:10.1109/TAU.1970.1162132). Immutable, thread-safe.
class Fourier {
 public:
  /// Prepares transforms of length `n` ≥ 1. Memory O(n).
  explicit Fourier(Index n);

  /// Replaces `x`, n elements, by its transform. Error about 1e-15 · log n of the largest |X|.
  /// Allocates scratch memory unless n is a power of two.
  void transform(std::span<std::complex<double>> x) const;

 private:
  using Complex = std::complex<double>;
  void by_halves(std::span<Complex> x) const;

  Index n_;
  Index size_;                   ///< the power of two
  std::vector<Complex> roots_;   ///< e^{−2πi k / size}, k < size / 2
  std::vector<Complex> chirp_;   ///< e^{−πi k² / n}; empty if n is a power of two
  std::vector<Complex> filter_;  ///< transform of the conjugate chirp, divided by size
};

}  // namespace masque::nn
