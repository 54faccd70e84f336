// Score terms that are products of queries and keys with rows of tables: Shaw, Transformer-XL,
// XLNet and DeBERTa.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "nn/position/position.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::nn {

// Which row of a table a pair of query and key reads.

/// The rows of all pairs of a sequence. Thread-safe.
class PairRows {
 public:
  virtual ~PairRows() = default;
  /// out[(i − queries.begin) · keys.size() + (j − keys.begin)] ← the row of query i and key j, for
  /// i in `queries` and j in `keys`; `out` has queries.size() · keys.size() numbers.
  virtual void fill(mask::Range queries, mask::Range keys, std::int32_t* out) const = 0;
};

/// The row of a pair is `row`(query position − key position) for the pairs of `positions`. `row`
/// must be thread-safe; the positions are borrowed.
std::shared_ptr<const PairRows> distance_rows(const PositionIds& positions,
                                              std::function<Index(Index distance)> row);

/// The row of a pair is 0 where query and key are of one segment, else 1: `queries` and `keys` have
/// the segments, which are borrowed; empty: all are one.
std::shared_ptr<const PairRows> segment_rows(std::span<const Index> queries,
                                             std::span<const Index> keys);

// Products with the rows.

/// What made tables of a sequence by a projection: keeps them and gets their gradients.
template <class T>
struct TableOwner {
  std::shared_ptr<const void> memory;  ///< owner of the tables, where nobody else has them
  /// Gets the gradients of the columns of a head in A and B (rows, head size), once a head; without
  /// data where there is no such table.
  std::function<void(Index head, MatrixView<const T> d_by_query, MatrixView<const T> d_by_key)>
      push;
};

/// A part of scores: scale · ((q_i + v)·A_r + k_j·B_r + u·k_j), r = row(i, j). What has no data is
/// left out. Views are borrowed, but for what `owner` keeps.
template <class T>
struct PairTables {
  std::shared_ptr<const PairRows> row;  ///< the row r of each pair
  double scale = 1;                     ///< scale of all three products
  MatrixView<const T> by_query;      ///< A (rows, heads · head size), or (rows, head size) for all
  MatrixView<const T> by_key;        ///< B, as A
  MatrixView<const T> content_bias;  ///< u (1, heads · head size)
  MatrixView<const T> query_bias;    ///< v (1, heads · head size)
  /// Where the gradient by A is added; it has the shape of A, and so on.
  MatrixView<T> d_by_query,
      d_by_key,         ///< by B
      d_content_bias,   ///< by u
      d_query_bias;     ///< by v
  TableOwner<T> owner;  ///< owner of A and B; empty: they are borrowed
};

/// The sum of some PairTables for all pairs of queries and keys.
/// Cost of a head: (queries · rows in use + keys · rows in use) · head size, and a sum a pair.
/// Memory of a head, forward: packed tables; products with queries for a tile at a time.
/// Backward: queries · rows in use.
template <class T>
class PairTableTerms : public PositionTerms<T>, public ScoreBias<T>, public ScoreTermsGradient<T> {
 public:
  /// The sum of the terms of `tables`.
  explicit PairTableTerms(std::vector<PairTables<T>> tables) : tables_(std::move(tables)) {}

  const ScoreBias<T>* bias() const override { return this; }
  ScoreTermsGradient<T>* bias_gradient() override { return this; }

  std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> query,
                                    MatrixView<const T> key) const override;

  void backward(Index head, MatrixView<const T> query, MatrixView<const T> key,
                MatrixView<const T> d_scores, MatrixView<T> d_query, MatrixView<T> d_key) override;

 protected:
  /// Writes to `out` the rows of the pairs of `queries` and `keys` in table `k`, as PairRows::fill.
  void rows(std::size_t k, mask::Range queries, mask::Range keys, std::int32_t* out) const {
    tables_[k].row->fill(queries, keys, out);
  }

 private:
  std::vector<PairTables<T>> tables_;
};

}  // namespace masque::nn
