// Products of matrices that change with every step of training: our own loops, because packing is
// then part of each product, and because a transposed operand costs nothing more here.
//
// An element is a sum of chains of fused multiply-adds (bf16: of pairs), one for each block of at
// most 384 of the inner index, in order: the same bits for any number of rows and threads.
#pragma once

#include <span>
#include <vector>

#include "base/divide.hpp"
#include "kernel/number/precision.hpp"
#include "kernel/product/packed_product.hpp"

namespace masque::kernel::panel {

// Operands of the products of training: floats as they are, rounded to bfloat16, or as pairs.

/// Columns of a panel, the unit of work: four strips.
constexpr Index kColumns = 4 * kStripColumns<float>;

/// Steps of the inner index, in elements, between two visits of a tile of the result: a strip's
/// part of the right operand stays in the first-level cache, a panel's in the second.
constexpr Index kDepth = 384;

/// What the elements of packed operands are.
enum class Kind {
  kFloat,    ///< floats as they are
  kRounded,  ///< floats rounded to bfloat16
  kPairs,    ///< two bfloat16, see multiply_packed_pairs
};

/// What operands consist of for `precision`, which is not kF64, on this processor: kFloat for kF32;
/// for kBf16 kPairs if has_pairs(), else kRounded.
Kind kind_of(Precision precision);

/// Elements of `kind` for an inner index that runs to `depth`; pairs end with a zero where it is
/// odd.
inline Index elements(Kind kind, Index depth) {
  return kind == Kind::kPairs ? (depth + 1) / 2 : depth;
}

/// Packs into `out`, as elements of `kind`, the transpose: column n of the operand is rows[n][0 …
/// depth); `rows` has at most kColumns pointers, each at `depth` numbers.
void pack_panel_transposed(Kind kind, std::span<const float* const> rows, Index depth,
                           const Strips<float>& out);

/// Packs into `out` the rows of `x` as elements of `kind`, elements(kind, x.columns) apart: a left
/// operand. Not for kFloat, which needs no copy.
void pack_left(Kind kind, MatrixView<const float> x, float* out);

/// A right operand (depth, columns), packed. Keeps its memory: packing again allocates only if it
/// grows. Movable.
class Right {
 public:
  /// Packs the operand whose row k is rows[k], `columns` numbers, as elements of `kind`. `rows` is
  /// read once, not kept. On all threads.
  void pack(Kind kind, std::span<const float* const> rows, Index columns);
  /// Packs the operand whose column n is rows[n], `depth` numbers, as elements of `kind`. `rows` is
  /// read once, not kept. On all threads.
  void pack_transposed(Kind kind, std::span<const float* const> rows, Index depth);

  Kind kind() const { return kind_; }                             ///< of the elements
  Index depth() const { return depth_; }                          ///< length of the inner index
  Index columns() const { return columns_; }                      ///< columns of the operand
  Index panels() const { return divide_up(columns_, kColumns); }  ///< number of panels
  /// The packed operand, (elements(kind, depth), columns). Valid until it is packed again.
  Strips<const float> packed() const { return {data_.data(), data_.columns()}; }

 private:
  void resize(Kind kind, Index depth, Index columns);
  Strips<float> strips() { return {data_.data(), data_.columns()}; }

  Kind kind_ = Kind::kFloat;
  Index depth_ = 0;
  Index columns_ = 0;
  Matrix<float> data_;
};

/// `y` = x · right, or added to y or to `bias` as `onto` says; `x` (rows, depth), `right` (depth,
/// columns), depth > 0; bias has right.columns() numbers with Onto::kBias. Not Onto::kChain: long
/// products are sums of chains. On all threads.
void multiply_right(MatrixView<const float> x, const Right& right, Onto onto,
                    std::span<const float> bias, MatrixView<float> y);

/// `y` += xᵀ · right for `x` (depth, rows of y) and `right` (depth, columns), depth > 0. sums[r] +=
/// Σ_k x(k, r) unless `sums` is empty. On all threads.
void multiply_transposed(MatrixView<const float> x, const Right& right, MatrixView<float> y,
                         std::span<float> sums);

/// Sets `rows` to pointers to the rows of the matrices `parts`, one after the other;
/// keeps the vector's memory.
void list_rows(std::span<const MatrixView<const float>> parts, std::vector<const float*>& rows);

}  // namespace masque::kernel::panel
