// The inner loops of attention on a tile: a few rows of queries and a run of keys.
//
// Tiles are padded to whole groups of 64 bytes, and so are packed matrices (kernel/packed_product).
// Every element is one chain of multiply-adds in the order of the depth, and lane sums run over
// keys of equal residue, so that a row's result does not depend on the other rows of its tile, nor
// on keys that add 0. Processors without fused multiply-add round twice: their bits differ.
#pragma once

#include <cstdint>
#include <span>

#include "kernel/product/pack_strips.hpp"
#include "kernel/product/packed_product.hpp"
#include "tensor/matrix.hpp"

namespace masque::nn::tile {

// Rows of tiles begin at multiples of 64 bytes.

/// Elements of a group: 64 bytes.
template <class T>
inline constexpr Index kLanes = kernel::kStripColumns<T>;

using kernel::pack;
using kernel::pack_transposed;
using kernel::Strips;

/// Rows of a tile, at most: the scores of a few hundred keys stay in the first-level cache.
inline constexpr Index kRows = 16;

/// `c` (rows, columns) = `a` (rows, depth) · `b`, or += with `add`. Any number of rows and columns.
template <class T>
void multiply(MatrixView<const T> a, Strips<const T> b, MatrixView<T> c, bool add) {
  kernel::multiply_packed<T>(kernel::LeftOperand<T>::rows(a), a.columns, b, c,
                             add ? kernel::Onto::kChain : kernel::Onto::kNothing);
}

/// `c` (columns of a, columns) += aᵀ · `b`, where `a` is (depth, any).
template <class T>
void add_transposed_product(MatrixView<const T> a, Strips<const T> b, MatrixView<T> c) {
  kernel::multiply_packed<T>(kernel::LeftOperand<T>::columns(a), a.rows, b, c,
                             kernel::Onto::kChain);
}

/// Elements of `row` whose bit in `bits` is not set become −∞; `columns` ≤ 64 of
/// them, a multiple of kLanes.
template <class T>
void hide(T* row, Index columns, std::uint64_t bits);

/// What a row carries from step to step.
template <class T>
struct RowState {
  T largest;     ///< largest of its scores so far; −∞ before the first
  T factor = 1;  ///< what earlier numerators must be multiplied with after this step
};

/// Replaces the rows of `x` by e^(x − largest), −∞ becoming 0. Updates `states`, one a row, and
/// `sums` (rows, kLanes): scales what they hold by the factor and adds the new numerators, or
/// with `squares` their squares.
template <class T>
void map_exp_shifted(MatrixView<T> x, std::span<RowState<T>> states, bool squares,
                     MatrixView<T> sums);
/// Replaces the rows of `x` by e^x; without sums.
template <class T>
void map_exp(MatrixView<T> x);
/// Replaces the rows of `x` by max(x, 0)²; adds them, or with `squares` their
/// squares, to `sums` (rows, kLanes).
template <class T>
void map_squared_relu(MatrixView<T> x, bool squares, MatrixView<T> sums);

/// Replaces the rows of `x` by 1 / (1 + e^−x), −∞ becoming 0; adds them, or with `squares` their
/// squares, to `sums` (rows, kLanes).
template <class T>
void map_sigmoid(MatrixView<T> x, bool squares, MatrixView<T> sums);

/// The sum of the kLanes elements of `lanes`, by halves.
template <class T>
T sum_lanes(const T* lanes);

/// `to` ← `from` · `factor`, of any length and address; they may be the same.
template <class T>
void multiply_row(std::span<const T> from, T factor, T* to);

}  // namespace masque::nn::tile
