// Matrix products by oneDNN. No type of the library shows here.
//
// All calls run on the calling thread: a caller that wants more splits its own work.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernel/number/precision.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel::onednn {

/// Columns of a block of packed weights: a block of 768 inputs stays in a second-level cache of
/// 1 MiB.
constexpr Index kBlockColumns = 128;

/// How many rows are multiplied at a time.
struct PanelShape {
  Index rows;  ///< at most
  Index step;  ///< numbers of rows are rounded up to a multiple of it, with rows of zeros
};

/// A few rows of a left operand as the packed weights want them. Valid until the thread makes the
/// next one, and as long as the rows that it was made of.
struct WeightPanel {
  const void* data = nullptr;  ///< rows of bfloat16 or float, padded with zeros
  Index rows = 0;              ///< real ones
  Index padded_rows = 0;       ///< a multiple of PanelShape::step: few shapes, few primitives
};

/// Weights (out, in), stacked, packed in blocks of columns. Immutable; thread-safe.
///
/// An element of a product is one sum over the inputs in an order that depends on their number
/// alone, so that a row's result depends on neither the number of rows nor threads.
class PackedWeights {
 public:
  /// Packs a copy of `weights`, each (out, in) with the same `in`, for products in `precision`,
  /// kF32 or kBf16; at least one. On all threads.
  PackedWeights(std::span<const MatrixView<const float>> weights, Precision precision);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  PanelShape panel_shape() const;  ///< the panels that this processor wants
  Index blocks() const;            ///< number of blocks of columns: ⌈outputs / kBlockColumns⌉
  /// Real columns of `block`; its product has block_stride() of them.
  Index block_columns(Index block) const;
  /// Columns of the product with `block`, with padding.
  Index block_stride(Index block) const;

  /// The rows of `x`, at least one and at most panel_shape().rows, as a panel; copied where they
  /// have gaps, need padding or another type.
  WeightPanel panel(MatrixView<const float> x) const;
  /// The product of `panel` with `block`, (padded_rows, block_stride) row-major, in scratch memory
  /// of this thread, until its next call.
  const float* multiply(const WeightPanel& panel, Index block) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// c = a · b + beta · c for plain matrices; a (m, k), b (k, n), or their transposes. Strides are
/// elements between rows as they are stored.
struct Gemm {
  bool transpose_a = false;  ///< a is stored as (k, m)
  bool transpose_b = false;  ///< b is stored as (n, k)
  Index m = 0,               ///< rows of c
      n = 0,                 ///< columns of c
      k = 0;                 ///< length of the inner index
  const float* a = nullptr;  ///< the left operand
  Index a_stride = 0;        ///< elements between its rows
  const float* b = nullptr;  ///< the right operand
  Index b_stride = 0;        ///< elements between its rows
  float beta = 0;            ///< factor of what c holds; 0: c is not read
  float* c = nullptr;        ///< the result, (m, n)
  Index c_stride = 0;        ///< elements between its rows
};
/// Computes the product `g` on the calling thread.
void gemm(const Gemm& g);

/// "oneDNN 2.6.3": name and version of the library at run time, for provenance.
std::string library_version();

}  // namespace masque::kernel::onednn
