// The product that everything else is made of: a few rows times a packed matrix.
//
// An element is one chain of multiply-adds in the order of the inner index, fused where the
// processor can: its bits do not depend on how rows, columns and the inner index are cut, nor on
// the number of registers, so that AVX2 and AVX-512 agree bit for bit.
#pragma once

#include "base/divide.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// Columns of a strip: 64 bytes, a line of the cache.
template <class T>
inline constexpr Index kStripColumns = 64 / static_cast<Index>(sizeof(T));

/// A right operand (depth, columns) cut into strips of kStripColumns columns. A strip holds its
/// `depth` rows one after the other. What is in columns after the last must be finite if the matrix
/// is. The memory is borrowed.
template <class T>
struct Strips {
  T* data = nullptr;  ///< the first strip, aligned to 64 bytes
  Index stride = 0;   ///< elements between the begins of two strips; a multiple of kStripColumns

  /// The same operand from row `depth` of the inner index on.
  Strips from_depth(Index depth) const { return {data + depth * kStripColumns<T>, stride}; }
  /// The same operand from `column` on, a multiple of kStripColumns.
  Strips from_column(Index column) const {
    return {data + column / kStripColumns<T> * stride, stride};
  }
};

/// Number of strips of a matrix with `columns` columns.
template <class T>
constexpr Index strips_of(Index columns) {
  return divide_up(columns, kStripColumns<T>);
}

/// Rows of a tile of a left operand that is cut into tiles.
inline constexpr Index kTileRows = 6;

/// A left operand: element (row, k) is data[row · row_step + k · depth_step]; or, cut into tiles of
/// kTileRows rows that are tile_step > 0 apart, data[⌊row / kTileRows⌋ · tile_step + (row mod
/// kTileRows) · row_step + k · depth_step]. Borrowed.
template <class T>
struct LeftOperand {
  const T* data;        ///< element (0, 0)
  Index row_step;       ///< elements from one row to the next
  Index depth_step;     ///< elements from one k to the next
  Index tile_step = 0;  ///< elements from one tile to the next; 0: no tiles

  /// The matrix `x` (rows, depth) as it is.
  static LeftOperand rows(const MatrixView<const T>& x) { return {x.data, x.stride, 1}; }
  /// The transpose of the matrix `x` (depth, rows).
  static LeftOperand columns(const MatrixView<const T>& x) { return {x.data, 1, x.stride}; }
};

/// What the product is added to.
enum class Onto {
  kNothing,  ///< c = a · b
  kChain,    ///< the chains go on from c
  kSum,      ///< c + a · b: the chains start at zero and are then added
  kBias,     ///< the same with a bias instead of every row of c
};

/// `c` (rows, columns) becomes a · b, or what `onto` says of c and a · b; the inner index of the
/// operands `a` and `b` runs to `depth`. c may have any shape and any stride ≥ its columns. With
/// Onto::kBias `bias` has c.columns numbers, else it is not read. On the calling thread.
template <class T>
void multiply_packed(const LeftOperand<T>& a, Index depth, const Strips<const T>& b,
                     const MatrixView<T>& c, Onto onto, const T* bias = nullptr);

/// multiply_packed where an element of `a` and of `b` is two bfloat16, neighbours along the
/// inner index, the first in the lower half: each step of a chain adds two products, and
/// `depth` counts pairs. With Onto::kNothing row r of the result `c` is multiplied with
/// factors[r] unless `factors` is nullptr; with other values of `onto` it is nullptr. `bias` as
/// there. Only if has_pairs().
void multiply_packed_pairs(const LeftOperand<float>& a, Index depth, const Strips<const float>& b,
                           const float* factors, const MatrixView<float>& c, Onto onto,
                           const float* bias = nullptr);

/// Whether the instruction set in use multiplies pairs of bfloat16 (AVX512-BF16).
bool has_pairs();

}  // namespace masque::kernel
