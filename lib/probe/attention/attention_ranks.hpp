// Ranks of matrices of one head. What a small key size costs: probe/statistics/low_rank_fit.hpp.
#pragma once

#include "tensor/matrix.hpp"

namespace masque::probe {

/// Ranks by the singular values σ of a matrix.
struct HeadRanks {
  double numeric = 0;    ///< singular values σ_i > 1e-6 σ_1
  double effective = 0;  ///< exp(H(σ / Σσ)): Roy and Vetterli 2007
};

/// The ranks of `x`, in double. NaN for a matrix that is 0 or not finite. Time: n³, some
/// milliseconds at n = 128.
HeadRanks ranks_of(MatrixView<const float> x);
/// The same of a matrix `x` of double.
HeadRanks ranks_of(MatrixView<const double> x);

}  // namespace masque::probe
