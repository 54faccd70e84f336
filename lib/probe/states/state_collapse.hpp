// How similar the hidden states of a sentence are to each other.
#pragma once

#include "tensor/matrix.hpp"

namespace masque::probe {

struct StateCollapse {
  double residual = 0;  ///< ‖x − 1 mean(x)ᵀ‖_F / ‖x‖_F; NaN if x is 0
  double cosine = 0;  ///< mean over pairs of rows i ≠ j; rows that are 0 are left out; NaN without
};

/// x (n, hidden size). Sums in double.
StateCollapse state_collapse(MatrixView<const float> x);
StateCollapse state_collapse(MatrixView<const double> x);

}  // namespace masque::probe
