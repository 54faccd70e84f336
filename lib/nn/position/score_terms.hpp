// Position terms of scores that models have, with their gradients: ALiBi, T5, XLNet, DeBERTa
// and BigBird.
// Loaded models, training and the schemes of those names are made from them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "nn/position/pair_tables.hpp"

namespace masque::nn {

/// −slope_h · |i − j| for `num_heads` heads. The arrays of `positions` are borrowed. Press et
/// al. 2021, arXiv:2108.12409.
template <class T>
std::unique_ptr<PositionTerms<T>> alibi_terms(Index num_heads, PositionIds positions);

/// T5: the bias of a bucket of the distance, per head, shared by layers. MPNet uses it, too.
/// Raffel et al. 2019, arXiv:1910.10683. `table` is (buckets, heads), at least 4 buckets, and
/// `d_table` is where gradients by it are added; without data they are not wanted. The buckets
/// are those of t5_bucket() with `max_distance` and `bidirectional`. All views and the arrays
/// of `positions` are borrowed.
template <class T>
std::unique_ptr<PositionTerms<T>> t5_terms(MatrixView<const T> table, MatrixView<T> d_table,
                                           Index max_distance, bool bidirectional,
                                           PositionIds positions);

/// XLNet and Transformer-XL: scale · (r_w_bias·k_j + (q_i + r_r_bias)·R_{i−j} + (q_i +
/// r_s_bias)·s_ij), what is added to scale · q_i·k_j. Widths are heads · head size; views are
/// borrowed. Yang 2019, arXiv:1906.08237, and Dai 2019, arXiv:1901.02860.
template <class T>
struct XlnetTerms {
  MatrixView<const T> relative;  ///< a row for each distance, projected
  /// The row of i − j; thread-safe.
  std::function<Index(Index distance)> row;
  MatrixView<const T> content_bias;   ///< r_w_bias (1, width)
  MatrixView<const T> position_bias;  ///< r_r_bias (1, width)
  MatrixView<const T> segment_bias;   ///< r_s_bias (1, width)
  MatrixView<const T> segment_table;  ///< (2, width): same, different; without data: no segments
  std::span<const Index> query_segments;  ///< empty, as those of keys: all one segment
  std::span<const Index> key_segments;    ///< as query_segments
  double scale = 1;                       ///< scale of all three products
  /// Where the gradient by `relative` is added, and so on; a view without data is left out.
  MatrixView<T> d_relative,
      d_content_bias,       ///< by r_w_bias
      d_position_bias,      ///< by r_r_bias
      d_segment_bias,       ///< by r_s_bias
      d_segment_table;      ///< by `segment_table`
  TableOwner<T> projected;  ///< owner of the memory of `relative`
};
/// The terms for `positions`; what `terms` and positions point to is borrowed.
template <class T>
std::unique_ptr<PositionTerms<T>> xlnet_terms(const XlnetTerms<T>& terms, PositionIds positions);

/// DeBERTa: scale · (q_i · K^r_{δ(i,j)} + k_j · Q^r_{δ(i,j)}), either part may be left out. As
/// released models do, both parts read the row of i − j; the paper writes δ(j, i) for the keys. He
/// 2020, arXiv:2006.03654; v2 and v3 with log buckets.
template <class T>
struct DisentangledTerms {
  MatrixView<const T> position_key;    ///< (2 · span, width); without data: no c2p
  MatrixView<const T> position_query;  ///< (2 · span, width); without data: no p2c
  Index span = 0;                      ///< position_buckets, or max_relative_positions
  Index buckets = -1;                  ///< position_buckets; ≤ 0: plain distances
  Index max_distance = 0;              ///< max_relative_positions
  double scale = 1;                    ///< 1 / √(head size · number of terms)
  /// Where the gradient by `position_key` is added; without data it is left out.
  MatrixView<T> d_position_key,
      d_position_query;     ///< by `position_query`
  TableOwner<T> projected;  ///< owner of the memory of both tables
};
/// The rows of both tables of `terms` that the pairs of `positions` read: the first one, and how
/// many from there on.
template <class T>
std::pair<Index, Index> disentangled_rows(const DisentangledTerms<T>& terms, PositionIds positions);
/// The terms for `positions`; what `terms` and positions point to is borrowed.
template <class T>
std::unique_ptr<PositionTerms<T>> disentangled_terms(const DisentangledTerms<T>& terms,
                                                     PositionIds positions);

/// BigBird in transformers: log(1 + `repeats`) for the keys of the first `block_size` tokens and
/// queries of other blocks than the first and the last, as if these keys occurred that often more.
/// `positions` count from 0, without gaps, those of keys from the first token to the last. The
/// arrays of `positions` are borrowed. Zaheer 2020, arXiv:2007.14062.
template <class T>
std::unique_ptr<PositionTerms<T>> repeated_block_terms(Index block_size, Index repeats,
                                                       PositionIds positions);

}  // namespace masque::nn
