// Score terms that are products of queries and keys with rows of tables: what Shaw, Transformer-XL,
// XLNet and DeBERTa share.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "nn/position/bias_terms.hpp"
#include "nn/position/plain_products.hpp"

namespace masque::nn {

/// scale · ((q_i + v)·A_r + k_j·B_r + u·k_j), r = row(i, j). What has no data is left out.
template <class T>
struct PairTables {
  /// Rows for the queries and keys number i and j of the sequence.
  std::function<Index(Index query, Index key)> row;
  double scale = 1;
  Matrix<T> by_query;                ///< A (rows, heads · head size), or (rows, head size) for all
  Matrix<T> by_key;                  ///< B, as A
  MatrixView<const T> content_bias;  ///< u (1, heads · head size)
  MatrixView<const T> query_bias;    ///< v (1, heads · head size)
  MatrixView<T> d_content_bias, d_query_bias;
  /// Gets the gradients of the columns of a head in A and B (rows, head size), once a head; without
  /// data where A or B is.
  std::function<void(Index head, MatrixView<const T> d_by_query, MatrixView<const T> d_by_key)>
      push;
};

/// The sum of some PairTables. Cost n² · head size multiplications a head and table.
template <class T>
class PairTableTerms : public PositionTerms<T>, public ScoreBias<T>, public ScoreTermsGradient<T> {
 public:
  explicit PairTableTerms(std::vector<PairTables<T>> tables) : tables_(std::move(tables)) {}

  const ScoreBias<T>* bias() const override { return this; }
  ScoreTermsGradient<T>* bias_gradient() override { return this; }

  std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> query,
                                    MatrixView<const T> key) const override {
    return std::make_unique<PairBias<T>>([this, head, query, key](Index i, Index j) {
      T sum{};
      for (const PairTables<T>& tables : tables_) {
        sum += static_cast<T>(tables.scale) *
               term(tables, head, tables.row(i, j), query.row_span(i), key.row_span(j));
      }
      return sum;
    });
  }

  void backward(Index head, MatrixView<const T> query, MatrixView<const T> key,
                MatrixView<const T> d_scores, MatrixView<T> d_query, MatrixView<T> d_key) override {
    Matrix<T> unused = Matrix<T>::zero(std::max(query.rows, key.rows), query.columns);
    if (d_query.data == nullptr) d_query = unused.view();
    if (d_key.data == nullptr) d_key = unused.view();
    for (const PairTables<T>& tables : tables_) {
      Matrix<T> d_a = Matrix<T>::zero(tables.by_query.rows(), query.columns);
      Matrix<T> d_b = Matrix<T>::zero(tables.by_key.rows(), key.columns);
      for (Index i = 0; i < d_scores.rows; ++i) {
        for (Index j = 0; j < d_scores.columns; ++j) {
          const T d = static_cast<T>(tables.scale) * d_scores.at(i, j);
          backward_pair(tables, head, tables.row(i, j), d, query.row_span(i), key.row_span(j),
                        d_query.row(i), d_key.row(j), d_a.view(), d_b.view());
        }
      }
      if (tables.push) tables.push(head, d_a.view(), d_b.view());
    }
  }

 protected:
  /// The row of a pair in table k.
  Index row(std::size_t k, Index query, Index key) const { return tables_[k].row(query, key); }

 private:
  /// Columns of a head in a table, which may serve all heads.
  static MatrixView<const T> columns(const Matrix<T>& table, Index head, std::size_t size) {
    const auto width = static_cast<Index>(size);
    return table.columns() == width ? table.view() : head_columns(table.view(), head, width);
  }

  static T term(const PairTables<T>& tables, Index head, Index row, std::span<const T> query,
                std::span<const T> key) {
    const std::size_t size = query.size();
    const Index first = head * static_cast<Index>(size);
    const MatrixView<const T> a = columns(tables.by_query, head, size);
    const MatrixView<const T> b = columns(tables.by_key, head, size);
    T sum{};
    for (std::size_t at = 0; at < size; ++at) {
      const auto d = static_cast<Index>(at);
      const T v = tables.query_bias.data == nullptr ? T{} : tables.query_bias.at(0, first + d);
      if (a.data != nullptr) sum += (query[at] + v) * a.at(row, d);
      if (b.data != nullptr) sum += key[at] * b.at(row, d);
      if (tables.content_bias.data != nullptr)
        sum += tables.content_bias.at(0, first + d) * key[at];
    }
    return sum;
  }

  static void backward_pair(const PairTables<T>& tables, Index head, Index row, const T& d,
                            std::span<const T> query, std::span<const T> key, T* d_query, T* d_key,
                            MatrixView<T> d_a, MatrixView<T> d_b) {
    const std::size_t size = query.size();
    const Index first = head * static_cast<Index>(size);
    const MatrixView<const T> a = columns(tables.by_query, head, size);
    const MatrixView<const T> b = columns(tables.by_key, head, size);
    for (std::size_t at = 0; at < size; ++at) {
      const auto e = static_cast<Index>(at);
      const T v = tables.query_bias.data == nullptr ? T{} : tables.query_bias.at(0, first + e);
      if (a.data != nullptr) {
        d_a.at(row, e) += d * (query[at] + v);
        d_query[at] += d * a.at(row, e);
        if (tables.d_query_bias.data != nullptr) {
          tables.d_query_bias.at(0, first + e) += d * a.at(row, e);
        }
      }
      if (b.data != nullptr) {
        d_b.at(row, e) += d * key[at];
        d_key[at] += d * b.at(row, e);
      }
      if (tables.content_bias.data != nullptr) {
        d_key[at] += d * tables.content_bias.at(0, first + e);
        if (tables.d_content_bias.data != nullptr) {
          tables.d_content_bias.at(0, first + e) += d * key[at];
        }
      }
    }
  }

  std::vector<PairTables<T>> tables_;
};

}  // namespace masque::nn
