// How similar the hidden states of a sentence are to each other.
#pragma once

#include "tensor/matrix.hpp"

namespace masque::probe {

/// How near the rows of a matrix are to each other. Rank collapse: Dong et al. 2021,
/// arXiv:2103.03404.
struct StateCollapse {
  double residual = 0;  ///< ‖x − 1 mean(x)ᵀ‖_F / ‖x‖_F; NaN if x is 0
  double cosine = 0;  ///< mean over pairs of rows i ≠ j; rows that are 0 are left out; NaN without
};

/// Of the states `x` (n, hidden size) of a sentence. Sums in double.
StateCollapse state_collapse(MatrixView<const float> x);
/// The same of states `x` of double.
StateCollapse state_collapse(MatrixView<const double> x);

}  // namespace masque::probe
