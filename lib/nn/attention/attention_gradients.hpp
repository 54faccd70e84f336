// The gradients of attention by the chain rule, in plain loops next to attention_reference.hpp. T
// is double or std::complex<double>.
#pragma once

#include "nn/attention/attention_reference.hpp"

namespace masque::nn {

/// Where the gradients of an AttentionProblem are added; a view without data is left out.
template <class T>
struct AttentionGradients {
  MatrixView<T> query;  ///< (T, heads · head size)
  MatrixView<T> key;    ///< (S, key heads · head size)
  MatrixView<T> value;  ///< (S, key heads · value size)
};

namespace reference {

/// f′(x) of map_score at the shifted score `x`; f is `map`.
template <class T>
T map_slope(ScoreMap map, const T& x) {
  using std::exp;
  switch (map) {
    case ScoreMap::kExp: return exp(x);
    case ScoreMap::kSquaredRelu: return real_part(x) > 0 ? x + x : T{};
    case ScoreMap::kSigmoid: break;
  }
  return map_score(map, x) * map_score(map, -x);
}

/// Turns `d_row`, gradients of the weights of a row, into those of its scores, in place; 0 where
/// `mask` hides a key. `score` has the scores before `normalizer`, `weights` the weights, and
/// `division` what normalize_row() returned in the forward pass.
template <class T>
void normalize_row_backward(const AttentionNormalizer& normalizer, const RowMask& mask,
                            std::span<const T> score, std::span<const T> weights,
                            const RowDivision<T>& division, std::span<T> d_row) {
  const T temperature = static_cast<T>(normalizer.temperature(mask.count()));
  const T d = division.divisor;
  T along{};  // of d_row along the weights: how the divisor moves
  for (std::size_t j = 0; j < d_row.size(); ++j) along += weights[j] * d_row[j];
  for (std::size_t j = 0; j < d_row.size(); ++j) {
    if (!mask.visible(static_cast<Index>(j)) || real_part(d) == 0) {
      d_row[j] = T{};
      continue;
    }
    T d_mapped = d_row[j];
    if (normalizer.divisor() == Divisor::kSum) d_mapped -= along;
    if (normalizer.divisor() == Divisor::kRootSquares) d_mapped -= weights[j] * along;
    const T x = temperature * score[j] - static_cast<T>(division.shift);
    d_row[j] = d_mapped / d * map_slope(normalizer.map(), x) * temperature;
  }
}

}  // namespace reference

/// The backward pass of attention_reference for `given`, without bf16 and sinks: from `d_context`
/// (T, heads · value size) adds to `gradients`. `visit` gets the gradients of the scores (T, S) of
/// each head: what position terms need; the terms themselves get no gradients. Memory: three (T, S)
/// matrices, and queries and keys once more. Serial.
template <class T>
void attention_reference_backward(const AttentionProblem<T>& given, MatrixView<const T> d_context,
                                  const AttentionGradients<T>& gradients,
                                  const WeightsVisitor<T>& visit = {}) {
  MASQUE_CHECK(!given.bf16 && given.sinks.empty());
  const OperandProblem<T> operands(given);
  const AttentionProblem<T>& problem = operands.get();
  OperandGradients<T> d_operands(given);
  const Index queries = problem.query.rows;
  const Index keys = problem.key.rows;
  const Index heads = problem.num_heads;
  const Index groups = problem.num_key_value_heads;
  Matrix<T> scores(queries, keys);
  Matrix<T> weights(queries, keys);
  Matrix<T> d_scores(queries, keys);
  for (Index head = 0; head < heads; ++head) {
    RowMask mask(mask::blocks_of_head(problem.blocks, head), keys);
    const reference::Head<T> x = reference::head_of(problem, head);
    const Index group = reference::group_of(head, heads, groups);
    const MatrixView<const T> d_out = reference::columns_of(d_context, head, heads);
    const MatrixView<T> d_query = reference::columns_of(d_operands.query.view(), head, heads);
    const MatrixView<T> d_key = reference::columns_of(d_operands.key.view(), group, groups);
    const MatrixView<T> d_value = reference::columns_of(gradients.value, group, groups);
    reference::scores(problem, head, scores.view());
    for (Index i = 0; i < queries; ++i) {
      mask.read(i);
      const std::span<T> a = weights.view().row_span(i);
      const std::span<T> d_row = d_scores.view().row_span(i);
      std::copy_n(scores.view().row(i), keys, a.data());
      const auto division = reference::normalize_row(*problem.normalizer, mask, a);
      for (Index j = 0; j < keys; ++j) {
        const auto at = static_cast<std::size_t>(j);
        d_row[at] = T{};
        for (Index e = 0; e < d_out.columns; ++e) {
          d_row[at] += d_out.at(i, e) * x.value.at(j, e);
          if (d_value.data != nullptr) d_value.at(j, e) += a[at] * d_out.at(i, e);
        }
      }
      reference::normalize_row_backward<T>(*problem.normalizer, mask, scores.view().row_span(i), a,
                                           division, d_row);
      if (problem.cap > 0)
        kernel::soft_cap_backward<T>(problem.cap, scores.view().middle_rows(i, 1),
                                     d_scores.view().middle_rows(i, 1));
      for (Index j = 0; j < keys; ++j) {
        const T d = d_row[static_cast<std::size_t>(j)] * static_cast<T>(problem.scale);
        for (Index e = 0; e < x.query.columns; ++e) {
          d_query.at(i, e) += d * x.key.at(j, e);
          d_key.at(j, e) += d * x.query.at(i, e);
        }
      }
    }
    if (visit) visit(head, d_scores.view());
  }
  d_operands.add_to(given, gradients.query, gradients.key);
}

}  // namespace masque::nn
