// Weights packed once for our own product: what Linear takes where oneDNN is slower.
#pragma once

#include <memory>
#include <span>

#include "kernel/number/precision.hpp"
#include "kernel/product/packed_product.hpp"

namespace masque::kernel {

/// Who multiplies with weights that are packed once.
enum class ProductChoice {
  kByShape,  ///< whom StripWeights::preferred names
  kFewRows,  ///< the same for products of few rows, which wait for the weights: ours, but for bf16
  kOurs,     ///< StripWeights, always
  kOneDnn,   ///< oneDNN, always
};

/// Lets `choice` decide which product multiplies in every Linear<float> made from now on: for
/// programs that write texts token by token, and to measure and to test both. The default is
/// kByShape. Not while others make one.
void choose_product(ProductChoice choice);

/// Weights (out, in), stacked, in strips of outputs. Immutable; thread-safe; movable.
class StripWeights {
 public:
  /// Copies `weights`, rounded to bfloat16 if `precision` is kBf16. On all threads. `weights` is
  /// not empty, all have the same number of inputs, and the precision is not kF64.
  StripWeights(std::span<const MatrixView<const float>> weights, Precision precision);

  Index inputs() const { return inputs_; }    ///< columns of the weights
  Index outputs() const { return outputs_; }  ///< rows of the stacked weights

  /// `y` (rows, columns) = outputs `first` … first + y.columns − 1 of x Wᵀ for `x` (rows,
  /// in); `first` is a multiple of 16. An element is a sum of chains, one for each 384
  /// inputs, in order: it depends on its row and its output alone. x is rounded like the
  /// weights. On the calling thread.
  void multiply(MatrixView<const float> x, Index first, MatrixView<float> y) const;

  /// Whether Linear takes this product for weights (`outputs`, `inputs`) in `precision`, or
  /// oneDNN's: as choose_product() says, or by a table of instruction sets and shapes for which
  /// ours was measured as faster. It depends on the weights alone and never on the rows of x: both
  /// products round differently, and a row has the same bits in every batch. By the table, pairs of
  /// bfloat16 (avx512_bf16, amx) are always oneDNN's. Stacked weights have the shape of the stack.
  static bool preferred(Index outputs, Index inputs, Precision precision);

 private:
  Index inputs_ = 0;
  Index outputs_ = 0;
  bool rounded_ = false;
  std::shared_ptr<float> strips_;  ///< (strips_of(outputs), inputs · kStripColumns)
};

}  // namespace masque::kernel
