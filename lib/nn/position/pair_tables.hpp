// Score terms that are products of queries and keys with rows of tables: Shaw, Transformer-XL,
// XLNet and DeBERTa.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nn/position/pair_rows.hpp"
#include "nn/position_scheme.hpp"

namespace masque::nn {

/// Who made tables of a sequence by a projection.
template <class T>
struct TableOwner {
  std::shared_ptr<const void> memory;  ///< of the tables, where nobody else has them
  /// Gets the gradients of the columns of a head in A and B (rows, head size), once a head; without
  /// data where there is no such table.
  std::function<void(Index head, MatrixView<const T> d_by_query, MatrixView<const T> d_by_key)>
      push;
};

/// scale · ((q_i + v)·A_r + k_j·B_r + u·k_j), r = row(i, j). What has no data is left out. Views
/// are borrowed, but for what `owner` keeps.
template <class T>
struct PairTables {
  std::shared_ptr<const PairRows> row;
  double scale = 1;
  MatrixView<const T> by_query;      ///< A (rows, heads · head size), or (rows, head size) for all
  MatrixView<const T> by_key;        ///< B, as A
  MatrixView<const T> content_bias;  ///< u (1, heads · head size)
  MatrixView<const T> query_bias;    ///< v (1, heads · head size)
  /// Where gradients are added, each of the shape of what it is the gradient by.
  MatrixView<T> d_by_query, d_by_key, d_content_bias, d_query_bias;
  TableOwner<T> owner;
};

/// The sum of some PairTables, over `queries` × `keys` pairs.
/// Cost of a head: (queries · rows in use + keys · rows in use) · head size, and a sum a pair.
/// Memory of a head, forward: packed tables; products with queries for a tile at a time. Backward:
/// queries · rows in use.
template <class T>
class PairTableTerms : public PositionTerms<T>, public ScoreBias<T>, public ScoreTermsGradient<T> {
 public:
  explicit PairTableTerms(std::vector<PairTables<T>> tables) : tables_(std::move(tables)) {}

  const ScoreBias<T>* bias() const override { return this; }
  ScoreTermsGradient<T>* bias_gradient() override { return this; }

  std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> query,
                                    MatrixView<const T> key) const override;

  void backward(Index head, MatrixView<const T> query, MatrixView<const T> key,
                MatrixView<const T> d_scores, MatrixView<T> d_query, MatrixView<T> d_key) override;

 protected:
  /// The rows of all pairs of table k.
  void rows(std::size_t k, mask::Range queries, mask::Range keys, std::int32_t* out) const {
    tables_[k].row->fill(queries, keys, out);
  }

 private:
  std::vector<PairTables<T>> tables_;
};

}  // namespace masque::nn
