// Scores times a number that each head has learned, and the logarithm of how many keys a query
// sees: t_i = s_h log n_i + b, as the normalizer ssmax_learned has it. Without terms of scores
// besides q·k it is the query that is multiplied.
#pragma once

#include <algorithm>
#include <cmath>

#include "mask/block_map.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// log n of query `i`, at least 0, n the keys that it sees. `blocks`: what queries see of `keys`
/// keys; nullptr: all.
inline double log_visible(const mask::BlockMap* blocks, Index keys, Index i) {
  const Index visible = blocks != nullptr ? blocks->visible(i) : keys;
  return std::log(static_cast<double>(std::max<Index>(visible, 1)));
}

/// t = `s` · `log_n` + `offset`, by which the scores of a query with log n are multiplied in a head
/// with the scale s.
template <class T>
T score_scale(const T& s, double log_n, double offset) {
  return s * static_cast<T>(log_n) + static_cast<T>(offset);
}

/// Calls use(i, h, log n) for all pairs of `queries` and `heads`, head by head; `blocks` and `keys`
/// as in log_visible().
template <class Use>
void each_log_visible(const mask::BlockMap* blocks, Index keys, Index queries, Index heads,
                      const Use& use) {
  const Index different = blocks != nullptr && blocks->by_head() ? heads : 1;
  for (Index first = 0; first < different; ++first) {
    const mask::BlockMap* const own = mask::blocks_of_head(blocks, first);
    for (Index i = 0; i < queries; ++i) {
      const double log_n = log_visible(own, keys, i);
      const Index end = different == 1 ? heads : first + 1;
      for (Index h = first; h < end; ++h) use(i, h, log_n);
    }
  }
}

/// Multiplies query i of head h in `query` (queries, heads · head size) by its t. `s`: (1, heads);
/// `offset` as in score_scale(); `blocks` and `keys` as in log_visible().
template <class T>
void scale_queries(MatrixView<const T> s, double offset, const mask::BlockMap* blocks, Index keys,
                   MatrixView<T> query) {
  const Index size = query.columns / s.columns;
  each_log_visible(blocks, keys, query.rows, s.columns, [&](Index i, Index h, double log_n) {
    const T scale = score_scale(s.at(0, h), log_n, offset);
    for (Index c = h * size; c < (h + 1) * size; ++c) query.at(i, c) *= scale;
  });
}

}  // namespace masque::model
