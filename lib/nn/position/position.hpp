// Where tokens stand, and what T5, ALiBi, DeBERTa and sinusoidal tables make of it. Terms of scores
// with their gradients: nn/position/score_terms.hpp. Rotary positions: kernel/rotary.hpp.
// Schemes by name: nn/position/position_scheme.hpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "nn/attention/attention.hpp"

namespace masque::nn {

/// The positions of queries and keys, which need not be consecutive, nor the same for both. The
/// arrays are borrowed by the terms made from them, as are the matrices of terms.
struct PositionIds {
  std::span<const Index> queries;  ///< position of each query
  std::span<const Index> keys;     ///< position of each key
};

/// ALiBi: −slope_h · |i − j| for `num_heads` heads and the distances of `positions`. Press et
/// al. 2021, arXiv:2108.12409.
template <class T>
std::unique_ptr<ScoreBias<T>> alibi_bias(Index num_heads, PositionIds positions);
/// The slopes of `num_heads` = H heads, 2^(−8h/H) for h = 1 … H; if H is not a power of two,
/// those of the paper's code.
std::vector<double> alibi_slopes(Index num_heads);

/// Fills row r of `table` (positions, d), d even, for p = positions[r] of `positions`: sin(p ·
/// 10000^(−2i/d)) and cos. `interleaved`: at features 2i and 2i + 1, as in the paper; else at i and
/// d/2 + i, as Marian-like tables of transformers. Vaswani et al. 2017, arXiv:1706.03762.
template <class T>
void sinusoidal_table(std::span<const double> positions, bool interleaved, MatrixView<T> table);

}  // namespace masque::nn
