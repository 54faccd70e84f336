// How large the numbers in each layer of a pass are.
#pragma once

#include "model/design.hpp"
#include "model/forward/layer_memory.hpp"

namespace masque::train {

/// Sums of squares over the rows of passes, for one layer; root_mean_square() of each is the
/// result. Gated attention units have no feed-forward layer: its sums are 0.
struct LayerMagnitudes {
  double numbers = 0;                  ///< rows · hidden size
  double state = 0;                    ///< after the layer
  double attention_branch = 0;         ///< what attention adds to the residual
  double feed_forward_branch = 0;      ///< what the feed-forward layer adds
  double attention_norm_input = 0;     ///< what the norm of attention reads
  double feed_forward_norm_input = 0;  ///< what that of the feed-forward layer reads

  /// √(`sum` / numbers) of one of the sums; 0 without numbers.
  double root_mean_square(double sum) const;
};

/// ω of NormPlacement::kAdmin; without data: another placement.
template <class T>
struct ResidualWeights {
  MatrixView<const T> attention;     ///< ω of the residual around attention, [1, hidden_size]
  MatrixView<const T> feed_forward;  ///< ω of that around the feed-forward layer, [1, hidden_size]
};

/// Adds to `to` the sums of a pass through layer `l` of `design`: `x` `[rows, hidden_size]` before
/// it, `y` after it, `own` what it keeps, `weights` its ω. Of the last layer a pass may have made
/// some rows alone: those that are wanted. T is float or double.
template <class T>
void add_magnitudes(const model::Design& design, Index l, const ResidualWeights<T>& weights,
                    MatrixView<const T> x, MatrixView<const T> y, const model::LayerMemory<T>& own,
                    LayerMagnitudes& to);

}  // namespace masque::train
