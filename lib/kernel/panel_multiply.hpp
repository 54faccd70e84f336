// The inner loops of the products of training: rows times a panel of packed columns.
//
// An element of a product is a chain of fused multiply-adds in the order of the inner index, from
// 0, which is then added to what was there: its bits do not depend on how rows and columns are cut.
#pragma once

#include "tensor/matrix.hpp"

namespace masque::kernel::panel {

constexpr Index kRows = 6;      ///< rows of a tile, whose sums stay in registers
constexpr Index kColumns = 64;  ///< columns of a panel
constexpr Index kWidth = 16;    ///< lanes of a vector

/// A left operand (rows, depth) of elements of 4 bytes. In rows: element (r, k) is
/// data[r · stride + k]. In tiles of kRows rows:
/// data[⌊r / kRows⌋ · stride + k · kRows + r mod kRows].
struct Left {
  const float* data;
  Index stride;
  bool tiles;
};

/// c (rows, columns ≤ kColumns) = start + a · b, where `panel` holds b as (depth, kColumns), rows
/// one after the other, aligned to 64 bytes, with any numbers behind c.columns. It starts with c
/// (`add`) or with zero.
void multiply(const Left& a, Index depth, const float* panel, MatrixView<float> c, bool add);

/// The same where an element of a and of b is two bfloat16, neighbours along the inner index, the
/// first in the lower half; only if has_pairs().
void multiply_pairs(const Left& a, Index depth, const float* panel, MatrixView<float> c, bool add);

/// Whether this processor multiplies pairs.
bool has_pairs();

/// One tile, for the files that multiply: c has whole vectors.
struct Tile {
  const float* a;
  Index a_stride;  ///< between rows, where they are not in tiles
  Index depth;
  const float* b;
  float* c;
  Index c_stride;
  bool add;
};

/// The parts of `multiply`: calls tile(vectors, rows, Tile) for tiles of at most `most` vectors;
/// columns behind the last whole vector take a way through memory of their own.
template <class Multiply>
[[gnu::always_inline]] inline void for_tiles(const Left& a, Index depth, const float* panel,
                                             const MatrixView<float>& c, bool add, Index most,
                                             const Multiply& tile) {
  alignas(64) float edge[std::size_t{kRows} * kWidth];
  for (Index r = 0; r < c.rows; r += kRows) {
    const Index rows = c.rows - r < kRows ? c.rows - r : kRows;
    const float* from = a.data + (a.tiles ? r / kRows : r) * a.stride;
    Index column = 0;
    while (column < c.columns) {
      const Index vectors = (c.columns - column) / kWidth;
      const Index taken = vectors >= 4 && most >= 4 ? 4 : vectors >= 2 && most >= 2 ? 2 : 1;
      float* to = c.row(r) + column;
      if (vectors > 0) {
        tile(taken, rows, Tile{from, a.stride, depth, panel + column, to, c.stride, add});
      } else {
        const Index left = c.columns - column;
        for (Index i = 0; add && i < rows; ++i) {
          for (Index j = 0; j < left; ++j) edge[i * kWidth + j] = to[i * c.stride + j];
        }
        tile(1, rows, Tile{from, a.stride, depth, panel + column, edge, kWidth, add});
        for (Index i = 0; i < rows; ++i) {
          for (Index j = 0; j < left; ++j) to[i * c.stride + j] = edge[i * kWidth + j];
        }
      }
      column += taken * kWidth;
    }
  }
}

}  // namespace masque::kernel::panel
