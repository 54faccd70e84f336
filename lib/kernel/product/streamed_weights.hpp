// Weights that are read anew for each product: what Linear takes where they have no place in
// memory.
#pragma once

#include <memory>

#include "kernel/number/precision.hpp"
#include "tensor/matrix.hpp"
#include "tensor/row_source.hpp"

namespace masque::kernel {

/// Weights (out, in) of which nothing is kept. Immutable; thread-safe; movable.
class StreamedWeights {
 public:
  /// For products with `weights` in `precision`, which is not kF64.
  StreamedWeights(std::shared_ptr<const RowSource> weights, Precision precision);

  /// Outputs that are read and multiplied at once.
  static constexpr Index kBlock = 64;

  /// `y` (rows, columns) = outputs `first` … first + y.columns − 1 of x Wᵀ for `x` (rows, in), with
  /// the bits of StripWeights::multiply for the same weights and precision; first is a multiple of
  /// kBlock. Reads each of these weights once, whatever the rows. On all threads, each of which
  /// keeps floats for twice kBlock outputs. Throws what the source throws.
  void multiply(MatrixView<const float> x, Index first, MatrixView<float> y) const;

 private:
  std::shared_ptr<const RowSource> weights_;
  bool rounded_ = false;  ///< x and the weights are rounded to bfloat16
};

}  // namespace masque::kernel
