// Where tokens stand, and what T5, ALiBi, DeBERTa and sinusoidal tables make of it. Terms of scores
// with their gradients: nn/position/score_terms.hpp. Rotary positions: kernel/rotary.hpp.
// Schemes by name: nn/position_scheme.hpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "nn/attention.hpp"

namespace masque::nn {

/// Where queries and keys stand. Positions need not be consecutive, nor the same for both. The
/// arrays are borrowed by the terms made from them, as are the matrices of terms.
struct PositionIds {
  std::span<const Index> queries;
  std::span<const Index> keys;
};

/// The bucket of a key that stands `offset` = key − query positions after the query.
Index t5_bucket(Index offset, Index buckets, Index max_distance, bool bidirectional);

/// ALiBi: −slope_h · |i − j|. Press 2021, arXiv:2108.12409.
template <class T>
std::unique_ptr<ScoreBias<T>> alibi_bias(Index num_heads, PositionIds positions);
/// Slopes 2^(−8h/H); for H that is no power of two those of the paper's code.
std::vector<double> alibi_slopes(Index num_heads);

/// The bucket of a distance query − key: itself up to half of the buckets, then logarithmic, odd in
/// the distance. `buckets` or `max_distance` ≤ 0: the distance.
Index disentangled_bucket(Index distance, Index buckets, Index max_distance);

/// Rows p: sin(p·10000^(−2i/d)) and cos. `interleaved`: features 2i and 2i + 1 (the paper,
/// Marian-like tables of transformers keep sines in the first half). Vaswani 2017.
template <class T>
void sinusoidal_table(std::span<const double> positions, bool interleaved, MatrixView<T> table);

}  // namespace masque::nn
