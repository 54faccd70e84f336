// Products of matrices that change with every step of training: our own loops, because packing is
// then part of each product, and because a transposed operand costs nothing more here.
//
// An element is a sum of chains of fused multiply-adds (bf16: of pairs), one for each block of at
// most 384 of the inner index, in order: the same bits for any number of rows and threads.
#pragma once

#include <span>
#include <vector>

#include "kernel/panel_pack.hpp"

namespace masque::kernel::panel {

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

  Kind kind() const { return kind_; }         ///< of the elements
  Index depth() const { return depth_; }      ///< length of the inner index
  Index columns() const { return columns_; }  ///< columns of the operand
  Index panels() const { return (columns_ + kColumns - 1) / kColumns; }  ///< number of panels
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
