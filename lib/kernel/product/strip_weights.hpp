// Weights packed once for our own product: what Linear takes where oneDNN is slower.
#pragma once

#include <memory>
#include <optional>

#include "kernel/number/precision.hpp"
#include "kernel/product/narrow_strips.hpp"
#include "kernel/product/packed_product.hpp"
#include "tensor/row_source.hpp"

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

/// Weights (out, in) in strips of outputs. Immutable; thread-safe; movable.
class StripWeights {
 public:
  /// Reads `weights` and keeps them as floats; with kBf16 rounded, in two bytes each. On all
  /// threads. The precision is not kF64. Throws what the source throws.
  StripWeights(const RowSource& weights, Precision precision);

  /// The same weights in two bytes each if all of them are bfloat16 numbers, or in about one if
  /// they have RowSource::read_codes(): products have the same bits. Else nothing: then what was
  /// read is dropped. The precision is kF32.
  static std::optional<StripWeights> narrow(const RowSource& weights);
  /// Whether Linear takes narrow() where it can for weights (`outputs`, `inputs`) in `precision`:
  /// for large ones, unless choose_product() says that all are oneDNN's.
  static bool tries_narrow(Index outputs, Index inputs, Precision precision);

  Index inputs() const { return inputs_; }    ///< columns of the weights
  Index outputs() const { return outputs_; }  ///< rows of the weights

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
  /// Of the shape of `weights`, with memory for them in `form` (none: floats).
  StripWeights(const RowSource& weights, std::optional<NarrowForm> form, bool rounded);
  /// Fills the strips from `weights`. False: a number is no bfloat16.
  bool pack(const RowSource& weights);
  Index strip_bytes() const;
  void multiply_floats(MatrixView<const float> x, Index first, MatrixView<float> y) const;
  void multiply_narrow(MatrixView<const float> x, Index first, MatrixView<float> y) const;

  Index inputs_ = 0;
  Index outputs_ = 0;
  bool rounded_ = false;               ///< x is rounded to bfloat16
  std::optional<NarrowForm> form_;     ///< none: floats
  std::shared_ptr<std::byte> strips_;  ///< strips_of(outputs), one after the other
};

// Steps of products with strips, which StreamedWeights takes, too.

/// Rows [first, first + count) of `source` in `memory`; rounded to bfloat16 if `rounded`.
MatrixView<const float> read_rows(const RowSource& source, Index first, Index count, bool rounded,
                                  Matrix<float>& memory);
/// Packs the transpose of `rows` as strips of floats, one after the other, to `out`.
void pack_floats(MatrixView<const float> rows, float* out);
/// `x` rounded to bfloat16, in `memory`.
MatrixView<const float> round_left(MatrixView<const float> x, Matrix<float>& memory);
/// `y` = x times `strips`, a right operand of x.columns rows: a chain for each 384 of them.
void multiply_strips(MatrixView<const float> x, const Strips<const float>& strips,
                     MatrixView<float> y);

}  // namespace masque::kernel
