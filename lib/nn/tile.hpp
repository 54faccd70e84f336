// The inner loops of attention on a tile: a few rows of queries and a run of keys.
//
// Vectors are 64 bytes; tiles are padded to whole vectors, packed matrices to panels of two. Every
// element is one chain of multiply-adds in the order of the depth, and lane sums run over keys of
// equal residue, so that a row's result does not depend on the other rows of its tile, nor on keys
// that add 0. Processors without fused multiply-add round twice: their bits differ.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/matrix.hpp"

namespace masque::nn::tile {

// Rows of tiles and panels begin at multiples of 64 bytes.

/// Elements of a vector.
template <class T>
inline constexpr Index kLanes = 64 / static_cast<Index>(sizeof(T));
/// Columns of a panel of a packed matrix.
template <class T>
inline constexpr Index kPanel = 2 * kLanes<T>;

/// x rounded up to a multiple of `unit`.
constexpr Index round_up(Index x, Index unit) { return (x + unit - 1) / unit * unit; }

/// Rows of a tile that this processor multiplies fastest.
Index best_rows();

/// A matrix (depth, columns) cut into panels: panel p has depth rows of kPanel columns. What is in
/// columns behind the last is finite if the matrix is, and else nothing is said of it.
template <class T>
struct Packed {
  T* data = nullptr;
  Index panel_stride = 0;  ///< elements from a panel to the next
};

/// Packs x (keys, columns) as it is, depth = keys: what weights are multiplied with.
template <class T>
void pack(MatrixView<const T> x, Packed<T> out);
/// Packs the transpose of x (keys, columns), depth = columns: what queries are multiplied with.
template <class T>
void pack_transposed(MatrixView<const T> x, Packed<T> out);

/// c (rows, columns) = a (rows, depth) · b, or += with `add`. Any number of rows; columns a
/// multiple of kLanes.
template <class T>
void multiply(MatrixView<const T> a, Packed<const T> b, MatrixView<T> c, bool add);

/// c (columns of a, columns) += aᵀ · b, where a is (depth, any). Columns of c a multiple of kLanes.
template <class T>
void add_turned_product(MatrixView<const T> a, Packed<const T> b, MatrixView<T> c);

/// Elements of the row whose bit is not set become −∞; `columns` ≤ 64 of them, a multiple of
/// kLanes.
template <class T>
void hide(T* row, Index columns, std::uint64_t bits);

/// What a row carries from step to step.
template <class T>
struct RowState {
  T largest;     ///< of its scores so far; −∞ before the first
  T factor = 1;  ///< what earlier numerators must be multiplied with after this step
};

/// Rows of e^(x − largest), −∞ becoming 0. Updates `states`, one a row, and `sums` (rows, kLanes):
/// scales what they hold by the factor and adds the new numerators, or their squares.
template <class T>
void map_exp_shifted(MatrixView<T> x, std::span<RowState<T>> states, bool squares,
                     MatrixView<T> sums);
/// Rows of e^x; without sums.
template <class T>
void map_exp(MatrixView<T> x);
/// Rows of max(x, 0)², with sums as above.
template <class T>
void map_squared_relu(MatrixView<T> x, bool squares, MatrixView<T> sums);

/// Rows of 1 / (1 + e^−x), −∞ becoming 0, with sums as above.
template <class T>
void map_sigmoid(MatrixView<T> x, bool squares, MatrixView<T> sums);

/// The sum of kLanes elements, by halves.
template <class T>
T sum_lanes(const T* lanes);

/// to ← from · factor, of any length and address; they may be the same.
template <class T>
void multiply_row(std::span<const T> from, T factor, T* to);

}  // namespace masque::nn::tile
