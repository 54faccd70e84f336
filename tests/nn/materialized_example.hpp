// Materialized attention with everything switched on, for numbers with and without derivatives.
#pragma once

#include <array>

#include "nn/attention/materialized_attention.hpp"
#include "nn/example.hpp"

namespace masque::test {

/// Weights times a trained factor of each pair.
template <class T>
class PairFactor final : public nn::WeightTerms<T> {
 public:
  explicit PairFactor(const Matrix<T>& factor)
      : factor_(factor), gradient(Matrix<T>::zero(factor.rows(), factor.columns())) {}
  void multiply(Index /*head*/, MatrixView<T> weights) const override {
    for (Index i = 0; i < weights.rows; ++i) {
      for (Index j = 0; j < weights.columns; ++j) weights.at(i, j) *= factor_.view().at(i, j);
    }
  }
  void multiply_backward(Index /*head*/, MatrixView<const T> weights,
                         MatrixView<T> d_weights) override {
    for (Index i = 0; i < weights.rows; ++i) {
      for (Index j = 0; j < weights.columns; ++j) {
        gradient.view().at(i, j) += weights.at(i, j) * d_weights.at(i, j);
        d_weights.at(i, j) *= factor_.view().at(i, j);
      }
    }
  }

 private:
  const Matrix<T>& factor_;

 public:
  Matrix<T> gradient;
};

/// A trained vector of each key, added to its value.
template <class T>
class KeyValueTerm final : public nn::ValueTerms<T> {
 public:
  explicit KeyValueTerm(const Matrix<T>& terms)
      : terms_(terms), gradient(Matrix<T>::zero(terms.rows(), terms.columns())) {}
  void add(Index /*head*/, MatrixView<const T> weights, MatrixView<T> context) const override {
    for (Index i = 0; i < weights.rows; ++i) {
      for (Index j = 0; j < weights.columns; ++j) {
        for (Index e = 0; e < context.columns; ++e) {
          context.at(i, e) += weights.at(i, j) * terms_.view().at(j, e);
        }
      }
    }
  }
  void add_backward(Index /*head*/, MatrixView<const T> weights, MatrixView<const T> d_context,
                    MatrixView<T> d_weights) override {
    for (Index i = 0; i < weights.rows; ++i) {
      for (Index j = 0; j < weights.columns; ++j) {
        for (Index e = 0; e < d_context.columns; ++e) {
          d_weights.at(i, j) += d_context.at(i, e) * terms_.view().at(j, e);
          gradient.view().at(j, e) += d_context.at(i, e) * weights.at(i, j);
        }
      }
    }
  }

 private:
  const Matrix<T>& terms_;

 public:
  Matrix<T> gradient;
};

/// score(i, j) += query_i · table_j + table_i · key_j.
template <class T>
class TableBias final : public nn::ScoreBias<T>, public nn::ScoreTermsGradient<T> {
 public:
  explicit TableBias(const Matrix<T>& table)
      : table_(table), gradient(Matrix<T>::zero(table.rows(), table.columns())) {}

  std::unique_ptr<nn::HeadBias<T>> head(Index /*head*/, MatrixView<const T> query,
                                        MatrixView<const T> key) const override {
    return std::make_unique<Head>(table_.view(), query, key);
  }
  void backward(Index /*head*/, MatrixView<const T> query, MatrixView<const T> key,
                MatrixView<const T> d_scores, MatrixView<T> d_query, MatrixView<T> d_key) override {
    const MatrixView<T> d_table = gradient.view();
    for (Index i = 0; i < d_scores.rows; ++i) {
      for (Index j = 0; j < d_scores.columns; ++j) {
        const T d = d_scores.at(i, j);
        for (Index e = 0; e < query.columns; ++e) {
          d_query.at(i, e) += d * table_.view().at(j, e);
          d_key.at(j, e) += d * table_.view().at(i, e);
          d_table.at(j, e) += d * query.at(i, e);
          d_table.at(i, e) += d * key.at(j, e);
        }
      }
    }
  }

 private:
  class Head final : public nn::HeadBias<T> {
   public:
    Head(MatrixView<const T> table, MatrixView<const T> query, MatrixView<const T> key)
        : table_(table), query_(query), key_(key) {}
    void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const override {
      for (Index i = queries.begin; i < queries.end; ++i) {
        for (Index j = keys.begin; j < keys.end; ++j) {
          T& score = scores.at(i - queries.begin, j - keys.begin);
          for (Index e = 0; e < query_.columns; ++e) {
            score += query_.at(i, e) * table_.at(j, e) + table_.at(i, e) * key_.at(j, e);
          }
        }
      }
    }

   private:
    MatrixView<const T> table_, query_, key_;
  };

  const Matrix<T>& table_;

 public:
  Matrix<T> gradient;
};

/// Two layers of materialized attention: 2 heads of scores, 3 of weights, 4 of values, 2 of keys.
/// The first has everything, the second takes its scores.
template <class T>
struct MaterializedExample {
  static constexpr Index kScores = 2, kWeights = 3, kValues = 4, kGroups = 2, kKey = 3, kValue = 2;

  std::array<Matrix<T>, 12> x;  ///< everything that has a gradient
  PairFactor<T> factor;
  KeyValueTerm<T> terms;
  TableBias<T> bias;
  std::vector<MatrixView<const T>> previous;
  nn::MaterializedAttention<T> first, second;

  MaterializedExample(Index n, const nn::AttentionNormalizer& normalizer,
                      const mask::BlockMap* blocks, bool own)
      : x{random_matrix<T>(n, kScores * kKey, 1),   random_matrix<T>(n, kGroups * kKey, 2),
          random_matrix<T>(n, kGroups * kValue, 3), random_matrix<T>(kWeights, kScores, 4),
          random_matrix<T>(kValues, kWeights, 5),   random_matrix<T>(n, n, 6, 0.5),
          random_matrix<T>(n, n, 7, 0.5),           random_matrix<T>(n, n, 8),
          random_matrix<T>(n, kValue, 9),           random_matrix<T>(n, kKey, 10, 0.3),
          random_matrix<T>(n, kScores * kKey, 11),  random_matrix<T>(n, kGroups * kKey, 12)},
        factor(x[7]),
        terms(x[8]),
        bias(x[9]),
        previous{x[5].view(), x[6].view()} {
    first.problem.query = x[0].view();
    first.problem.key = x[1].view();
    first.problem.value = x[2].view();
    first.problem.num_heads = kScores;
    first.problem.num_key_value_heads = kGroups;
    first.problem.scale = 0.6;
    first.problem.normalizer = &normalizer;
    first.problem.blocks = blocks;
    second.problem = first.problem;
    second.problem.query = x[10].view();
    second.problem.key = x[11].view();
    first.problem.bias = &bias;
    first.talking_before = x[3].view();
    first.talking_after = x[4].view();
    first.previous = previous;
    first.pass_own_scores = own;
    first.weight_terms = &factor;
    first.value_terms = &terms;
  }
  MaterializedExample(const MaterializedExample&) = delete;
  MaterializedExample& operator=(const MaterializedExample&) = delete;

  static Index width_of_first() { return kValues * kValue; }
  static Index width_of_second() { return kScores * kValue; }

  /// Runs both layers.
  void forward(MatrixView<T> context, MatrixView<T> second_context, nn::MaterializedSaved<T>& saved,
               nn::MaterializedSaved<T>& second_saved) {
    nn::materialized_attention_forward(first, context, &saved);
    handed_on.clear();
    for (const Matrix<T>& scores : saved.scores) handed_on.push_back(scores.view());
    second.previous = handed_on;
    nn::materialized_attention_forward(second, second_context, &second_saved);
  }
  std::vector<MatrixView<const T>> handed_on;
};

}  // namespace masque::test
