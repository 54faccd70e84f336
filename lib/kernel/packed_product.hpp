// The product that everything else is made of: a few rows times a packed matrix.
//
// An element is one chain of multiply-adds in the order of the inner index, fused where the
// processor can: its bits do not depend on how rows, columns and the inner index are cut, nor on
// the number of registers, so that AVX2 and AVX-512 agree bit for bit.
#pragma once

#include "tensor/matrix.hpp"

namespace masque::kernel {

/// Columns of a strip: 64 bytes, a line of the cache.
template <class T>
inline constexpr Index kStripColumns = 64 / static_cast<Index>(sizeof(T));

/// A right operand (depth, columns) cut into strips of kStripColumns columns. A strip holds its
/// `depth` rows one after the other; strips begin at multiples of 64 bytes, `stride` elements
/// apart. What is in columns after the last must be finite if the matrix is. The memory is
/// borrowed.
template <class T>
struct Strips {
  T* data = nullptr;
  Index stride = 0;

  /// From a row of the depth on.
  Strips from_depth(Index depth) const { return {data + depth * kStripColumns<T>, stride}; }
  /// From a column on, a multiple of kStripColumns.
  Strips from_column(Index column) const {
    return {data + column / kStripColumns<T> * stride, stride};
  }
};

/// Strips of a matrix with this many columns.
template <class T>
constexpr Index strips_of(Index columns) {
  return (columns + kStripColumns<T> - 1) / kStripColumns<T>;
}

/// Rows of a tile of a left operand that is cut into tiles.
inline constexpr Index kTileRows = 6;

/// A left operand: element (row, k) is data[row · row_step + k · depth_step]; or, cut into tiles of
/// kTileRows rows that are tile_step > 0 apart,
/// data[⌊row / kTileRows⌋ · tile_step + (row mod kTileRows) · row_step + k · depth_step]. Borrowed.
template <class T>
struct LeftOperand {
  const T* data;
  Index row_step;
  Index depth_step;
  Index tile_step = 0;

  /// The rows of a matrix.
  static LeftOperand rows(const MatrixView<const T>& x) { return {x.data, x.stride, 1}; }
  /// The columns of a matrix.
  static LeftOperand columns(const MatrixView<const T>& x) { return {x.data, 1, x.stride}; }
};

/// What the product is added to.
enum class Onto {
  kNothing,  ///< c = a · b
  kChain,    ///< the chains go on from c
  kSum,      ///< c + a · b: the chains start at zero and are then added
  kBias,     ///< the same with a bias instead of every row of c
};

/// c (rows, columns) becomes a · b, or c and a · b, the inner index running to `depth`. c may have
/// any shape and any stride ≥ its columns. Onto::kBias: `bias` has c.columns numbers. On the
/// calling thread.
template <class T>
void multiply_packed(const LeftOperand<T>& a, Index depth, const Strips<const T>& b,
                     const MatrixView<T>& c, Onto onto, const T* bias = nullptr);

/// The same where an element of a and of b is two bfloat16, neighbours along the inner index, the
/// first in the lower half: each step of a chain adds two products. Onto::kNothing: row r of the
/// result is multiplied with factors[r] unless factors is nullptr. Only if has_pairs().
void multiply_packed_pairs(const LeftOperand<float>& a, Index depth, const Strips<const float>& b,
                           const float* factors, const MatrixView<float>& c, Onto onto,
                           const float* bias = nullptr);

/// Whether the instruction set in use multiplies pairs of bfloat16 (AVX512-BF16).
bool has_pairs();

}  // namespace masque::kernel
