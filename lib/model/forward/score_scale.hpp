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

/// Multiplies query i of head h in `query` (queries, heads · head size) by its t. `s`: (1, heads);
/// `offset` as in score_scale(); `blocks` and `keys` as in log_visible().
template <class T>
void scale_queries(MatrixView<const T> s, double offset, const mask::BlockMap* blocks, Index keys,
                   MatrixView<T> query) {
  const Index size = query.columns / s.columns;
  for (Index i = 0; i < query.rows; ++i) {
    const double log_n = log_visible(blocks, keys, i);
    for (Index c = 0; c < query.columns; ++c)
      query.at(i, c) *= score_scale(s.at(0, c / size), log_n, offset);
  }
}

}  // namespace masque::model
