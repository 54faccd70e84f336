// Weights packed once for our own product: what Linear takes where oneDNN is slower.
#pragma once

#include <memory>
#include <span>

#include "kernel/packed_product.hpp"
#include "kernel/precision.hpp"

namespace masque::kernel {

/// Weights (out, in), stacked, in strips of outputs. Immutable; thread-safe; movable.
class StripWeights {
 public:
  /// Copies the weights, rounded to bfloat16 if the precision is kBf16. On all threads. `weights`
  /// is not empty, all have the same number of inputs, and the precision is not kF64.
  StripWeights(std::span<const MatrixView<const float>> weights, Precision precision);

  Index inputs() const { return inputs_; }
  Index outputs() const { return outputs_; }

  /// y (rows, columns) = x (rows, in) · Wᵀ, outputs first … first + y.columns − 1; `first` is a
  /// multiple of 16. An element is a sum of chains, one for each 384 inputs, in order: it depends
  /// on its row and its output alone. x is rounded like the weights. On the calling thread.
  void multiply(MatrixView<const float> x, Index first, MatrixView<float> y) const;

  /// Whether this product is faster than oneDNN's with the instruction set in use: oneDNN 2.6 and
  /// 3.x have their fast kernels for packed weights on AVX-512 and above.
  static bool preferred();

 private:
  Index inputs_ = 0;
  Index outputs_ = 0;
  bool rounded_ = false;
  std::shared_ptr<float> strips_;  ///< (strips_of(outputs), inputs · kStripColumns)
};

}  // namespace masque::kernel
