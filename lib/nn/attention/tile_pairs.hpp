// Tiles whose products take bfloat16 operands: each instruction multiplies pairs and adds them to a
// float.
//
// Two neighbours along the depth of a product are a pair and lie where a float would, the first in
// its lower half. So pairs share the layout, the buffers and the transposition of floats (tile.hpp)
// at half the depth; where the depth is odd the last pair ends with 0. Rounding is to nearest even,
// numbers below 2⁻¹²⁶ become 0.
#pragma once

#include <span>

#include "nn/attention/tile.hpp"

namespace masque::nn::tile {

/// Number of pairs that hold `n` numbers.
constexpr Index pairs_of(Index n) { return (n + 1) / 2; }

using kernel::has_pairs;

/// Rounds the rows of `x` to pairs along the row: `out` is (x.rows, ≥ pairs_of(x.columns))
/// and may begin where x does.
void to_pairs(MatrixView<const float> x, MatrixView<float> out);

/// Rounds the rows 2k and 2k + 1 of `x` to pairs in row k of `out` (pairs_of(x.rows),
/// x.columns): the left operand of add_transposed_product_of_pairs. Columns a multiple of
/// kLanes; rows begin at multiples of 64 bytes.
void to_row_pairs(MatrixView<const float> x, MatrixView<float> out);

/// Packs `x` (depth, columns) into `out` as kernel::pack does, with the depth in pairs; an odd
/// depth ends with a pair with 0.
void pack_pairs(MatrixView<const float> x, Strips<float> out);
/// Packs `x` (columns, depth) into `out` as kernel::pack_transposed does, with the depth in pairs.
void pack_pairs_transposed(MatrixView<const float> x, Strips<float> out);

/// `c` (rows, columns) = `a` (rows, pairs) · `b`, row r times factors[r] of `factors`.
inline void multiply_pairs(MatrixView<const float> a, Strips<const float> b,
                           std::span<const float> factors, MatrixView<float> c) {
  kernel::multiply_packed_pairs(kernel::LeftOperand<float>::rows(a), a.columns, b, factors.data(),
                                c, kernel::Onto::kNothing);
}
/// `c` (rows, columns) += `a` (rows, pairs) · `b`.
inline void add_product_of_pairs(MatrixView<const float> a, Strips<const float> b,
                                 MatrixView<float> c) {
  kernel::multiply_packed_pairs(kernel::LeftOperand<float>::rows(a), a.columns, b, nullptr, c,
                                kernel::Onto::kChain);
}
/// `c` (columns of a, columns) += aᵀ · `b`, where `a` is (pairs, any) of to_row_pairs.
inline void add_transposed_product_of_pairs(MatrixView<const float> a, Strips<const float> b,
                                            MatrixView<float> c) {
  kernel::multiply_packed_pairs(kernel::LeftOperand<float>::columns(a), a.rows, b, nullptr, c,
                                kernel::Onto::kChain);
}

}  // namespace masque::nn::tile
