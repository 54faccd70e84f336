// Tiles whose products take bfloat16 operands: each instruction multiplies pairs and adds them to a
// float.
//
// Two neighbours along the depth of a product are a pair and lie where a float would, the first in
// its lower half. So pairs share the layout, the buffers and the transposition of floats (tile.hpp)
// at half the depth; where the depth is odd the last pair ends with 0. Rounding is to nearest even,
// numbers below 2⁻¹²⁶ become 0.
#pragma once

#include "nn/tile.hpp"

namespace masque::nn::tile {

/// Pairs that hold n numbers.
constexpr Index pairs_of(Index n) { return (n + 1) / 2; }

/// Whether this processor multiplies pairs (AVX512-BF16). The rest needs it.
bool has_pairs();

/// Rows of pairs (x.rows, ≥ pairs_of(x.columns)); may begin where x does.
void to_pairs(MatrixView<const float> x, MatrixView<float> out);

/// Pairs of the rows 2k and 2k + 1 of x, in out (pairs_of(x.rows), x.columns): the left operand of
/// add_turned_product_of_pairs. Columns a multiple of kLanes; rows begin at multiples of 64 bytes.
void to_row_pairs(MatrixView<const float> x, MatrixView<float> out);

/// As pack and pack_transposed, with the depth in pairs; pack rounds the keys up to whole pairs.
void pack_pairs(MatrixView<const float> x, Packed<float> out);
void pack_pairs_transposed(MatrixView<const float> x, Packed<float> out);

/// c (rows, columns) = a (rows, pairs) · b, row r times factors[r]. Columns a multiple of kLanes.
void multiply_pairs(MatrixView<const float> a, Packed<const float> b,
                    std::span<const float> factors, MatrixView<float> c);
/// c += a · b.
void add_product_of_pairs(MatrixView<const float> a, Packed<const float> b, MatrixView<float> c);
/// c (columns of a, columns) += aᵀ · b, where a is (pairs, any) of to_row_pairs.
void add_turned_product_of_pairs(MatrixView<const float> a, Packed<const float> b,
                                 MatrixView<float> c);

}  // namespace masque::nn::tile
