// Position terms of scores: one file per scheme under nn/position/. Each gives a ScoreBias for one
// sequence of one layer. Schemes that turn queries and keys (rotary) or are added to the input
// (learned, sinusoidal) are kernels and tables instead: see kernel/rotary.hpp and
// `sinusoidal_table`.
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

/// T5: bias β of a bucket of the distance, per head, shared by layers. MPNet uses it too.
/// table (buckets, heads). Raffel 2019, arXiv:1910.10683; the bucket map of systems.md 8.5.
template <class T>
std::unique_ptr<ScoreBias<T>> t5_bias(MatrixView<const T> table, Index max_distance,
                                      bool bidirectional, PositionIds places);
/// The bucket of a key that stands `offset` = key − query positions after the query.
Index t5_bucket(Index offset, Index buckets, Index max_distance, bool bidirectional);

/// ALiBi: −slope_h · |i − j|. Press 2021, arXiv:2108.12409.
template <class T>
std::unique_ptr<ScoreBias<T>> alibi_bias(Index num_heads, PositionIds places);
/// Slopes 2^(−8h/H); for H that is no power of two those of the paper's code.
std::vector<double> alibi_slopes(Index num_heads);

/// XLNet: scale · ((q_i + r_r_bias)·R_{i−j} + (q_i + r_s_bias)·s_ij). The content term is the
/// attention's own: the queries given to it are q + r_w_bias.
/// Yang 2019, arXiv:1906.08237, and Dai 2019, arXiv:1901.02860.
template <class T>
struct XlnetTerms {
  MatrixView<const T> query;          ///< (T, heads · head size) without any bias
  MatrixView<const T> relative;       ///< row r is distance first_distance − r
  Index first_distance = 0;           ///< largest i − j
  std::span<const T> position_bias;   ///< r_r_bias (heads · head size)
  std::span<const T> segment_bias;    ///< r_s_bias; empty: no segment term
  MatrixView<const T> segment_table;  ///< (2, heads · head size): same, different
  std::span<const Index> query_segments;
  std::span<const Index> key_segments;
  double scale = 1;
};
template <class T>
std::unique_ptr<ScoreBias<T>> xlnet_bias(const XlnetTerms<T>& terms, PositionIds places);

/// DeBERTa: scale · (q_i · K^r_{δ(i,j)} + k_j · Q^r_{δ(j,i)}), either part may be left out.
/// He 2020, arXiv:2006.03654; v2 and v3 with log buckets.
template <class T>
struct DisentangledTerms {
  MatrixView<const T> position_key;    ///< (2 · span, heads · head size); without data: no c2p
  MatrixView<const T> position_query;  ///< (2 · span, heads · head size); without data: no p2c
  Index span = 0;                      ///< position_buckets, or max_relative_positions
  Index buckets = -1;                  ///< position_buckets; < 0: plain distances
  Index max_distance = 0;              ///< max_relative_positions
  double scale = 1;                    ///< 1 / √(head size · number of terms)
};
/// The bucket of a distance query − key: itself up to half of the buckets, then logarithmic, odd in
/// the distance. `buckets` or `max_distance` ≤ 0: the distance.
Index disentangled_bucket(Index distance, Index buckets, Index max_distance);
template <class T>
std::unique_ptr<ScoreBias<T>> disentangled_bias(const DisentangledTerms<T>& terms,
                                                PositionIds places);

/// Rows p: sin(p·10000^(−2i/d)) and cos. `interleaved`: features 2i and 2i + 1 (the paper,
/// Marian-like tables of transformers keep sines in the first half). Vaswani 2017.
template <class T>
void sinusoidal_table(std::span<const double> positions, bool interleaved, MatrixView<T> table);

}  // namespace masque::nn
