// Matrix products by oneDNN. No type of the library shows here.
//
// All calls run on the calling thread: a caller that wants more splits its own work.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernel/precision.hpp"
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
/// next one.
struct WeightPanel {
  const void* data = nullptr;
  Index rows = 0;         ///< real ones
  Index padded_rows = 0;  ///< a multiple of PanelShape::step: few shapes, few primitives
};

/// Weights (out, in), stacked, packed in blocks of columns. Immutable; thread-safe.
///
/// An element of a product is one sum over the inputs in an order that depends on their number
/// alone, so that a row's result depends on neither the number of rows nor threads.
class PackedWeights {
 public:
  PackedWeights(std::span<const MatrixView<const float>> weights, Precision precision);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  PanelShape panel_shape() const;
  Index blocks() const;
  /// Columns of a block that are real; its product has block_stride() of them.
  Index block_columns(Index block) const;
  Index block_stride(Index block) const;

  /// x: at most panel_shape().rows rows; copied where it has gaps, needs padding or another type.
  WeightPanel panel(MatrixView<const float> x) const;
  /// The product (padded_rows, block_stride) in scratch memory of this thread, until its next call.
  const float* multiply(const WeightPanel& panel, Index block) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// c = a · b + beta · c for plain matrices; a (m, k), b (k, n), or their transposes.
struct Gemm {
  bool transpose_a = false;
  bool transpose_b = false;
  Index m = 0, n = 0, k = 0;
  const float* a = nullptr;
  Index a_stride = 0;
  const float* b = nullptr;
  Index b_stride = 0;
  float beta = 0;
  float* c = nullptr;
  Index c_stride = 0;
};
void gemm(const Gemm& g);

/// "oneDNN 2.6.3 avx512_core_bf16": for provenance.
std::string library_version();

}  // namespace masque::kernel::onednn
