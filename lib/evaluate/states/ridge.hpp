// Ridge regression in closed form, evaluated by cross-validation.
#pragma once

#include <span>
#include <vector>

#include "tensor/matrix.hpp"

namespace masque::evaluate {

/// Predictions (n, k) of `targets` (n, k) from `features` (n, d): those of the rows of fold f by
/// the regression on all other folds, with intercept,
///     B = (Xᵀ X + λ I)⁻¹ Xᵀ Y,   λ = ridge · trace(Xᵀ X) / d,   X and Y centred.
///
/// `fold` has the fold of each row, 0 ≤ fold[i] < `folds`; rows of at least two folds must be
/// there.
///
/// Cost n d (d + k) + folds (d³ + d² k); memory folds · d (d + k) doubles. One thread, so that bits
/// do not depend on how many there are. Features that never vary get weight 0.
Matrix<double> ridge_predictions(MatrixView<const float> features, MatrixView<const double> targets,
                                 std::span<const Index> fold, Index folds, double ridge);

/// 1 − Σ (y − ŷ)² / Σ (y − mean)² of `targets` y and `predictions` ŷ (n, k), pooled over the
/// columns; NaN if no target varies.
double r_squared(MatrixView<const double> targets, MatrixView<const double> predictions);

}  // namespace masque::evaluate
