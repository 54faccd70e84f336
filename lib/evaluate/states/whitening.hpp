// Whitening of sentence vectors.
#pragma once

#include <vector>

#include "tensor/matrix.hpp"

namespace masque::evaluate {

/// x ↦ (x − mean) W. Su, Cao, Liu, Ouyang 2021, arXiv:2103.15316, algorithm 1.
struct Whitening {
  std::vector<double> mean;  ///< mean of the fitted vectors: (size)
  Matrix<double> weight;     ///< (size, kept)

  /// The `kept` numbers of `x`, one vector of mean.size() numbers.
  std::vector<double> apply(std::span<const double> x) const;
};

/// Fits W = U Λ^(−1/2) to `vectors` (n, size), rows without gaps, U Λ Uᵀ their covariance (divided
/// by n − 1), the `kept` largest of Λ first: the results have the covariance 1. The largest element
/// of a column of U is positive. Throws InputError if fewer than `kept` elements of Λ are above
/// 1e-12 of the largest, or for fewer than two vectors. 1 ≤ `kept` ≤ size. One thread; cost O(n ·
/// size² + size³).
Whitening fit_whitening(MatrixView<const double> vectors, Index kept);

}  // namespace masque::evaluate
