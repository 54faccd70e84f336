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

/// A matrix (depth, columns) cut into panels: panel p has depth rows of kPanel columns. Columns
/// behind the last are 0.
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

/// Elements of the row whose bit is not set become −∞; `columns` ≤ 64 of them, a multiple of
/// kLanes.
template <class T>
void hide(T* row, Index columns, std::uint64_t bits);

/// The largest element of a row, at least `least`. A multiple of kLanes columns.
template <class T>
T row_max(std::span<const T> row, T least);

/// x ← e^(x − shift); −∞ becomes 0. Adds to `sums` (kLanes elements) the results, or their squares.
template <class T>
void map_exp(std::span<T> row, T shift, bool squares, T* sums);
/// x ← max(x, 0)², with the same sums.
template <class T>
void map_squared_relu(std::span<T> row, bool squares, T* sums);

/// x ← x · factor.
template <class T>
void multiply_row(std::span<T> row, T factor);

}  // namespace masque::nn::tile
