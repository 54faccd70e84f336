// Attention as it is defined, in plain loops; its gradients: attention_gradients.hpp. T is float,
// double or std::complex<double>, whose imaginary part carries a derivative (complex step).
//
// Memory: one (T, S) matrix, one head at a time. Serial.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "kernel/number/scalar.hpp"
#include "nn/attention/attention.hpp"
#include "nn/attention/round.hpp"
#include "nn/attention/row_mask.hpp"
#include "nn/attention/unit_length.hpp"

namespace masque::nn {

namespace reference {

using kernel::reference::real_part;

/// The columns of one head, as views of an AttentionProblem.
template <class T>
struct Head {
  MatrixView<const T> query;  ///< (T, head size)
  MatrixView<const T> key;    ///< (S, head size)
  MatrixView<const T> value;  ///< (S, value size)
};

/// The key head that query head `head` reads, of `num_heads` and `num_key_value_heads`.
inline Index group_of(Index head, Index num_heads, Index num_key_value_heads) {
  return head * num_key_value_heads / num_heads;
}

/// The columns of `head` in `x`, whose columns `heads` heads share equally.
template <class T>
MatrixView<T> columns_of(const MatrixView<T>& x, Index head, Index heads) {
  const Index size = x.columns / heads;
  return x.middle_columns(head * size, size);
}

/// The matrices of query head `head` of `problem`, with those of its key head.
template <class T>
Head<T> head_of(const AttentionProblem<T>& problem, Index head) {
  const Index groups = problem.num_key_value_heads;
  const Index group = group_of(head, problem.num_heads, groups);
  return {columns_of(problem.query, head, problem.num_heads),
          columns_of(problem.key, group, groups), columns_of(problem.value, group, groups)};
}

/// An operand of a product: x itself or a copy that is rounded to bfloat16.
template <class T>
struct Operand {
  /// `x`, which must outlive this object, or with `bf16` a rounded copy.
  Operand(MatrixView<const T> x, bool bf16)
      : copy(bf16 ? rounded(x) : Matrix<T>()), view(bf16 ? std::as_const(copy).view() : x) {}
  Matrix<T> copy;            ///< the rounded copy, or empty
  MatrixView<const T> view;  ///< what products take
};

/// The scores `s` (T, S) of `head`: all pairs, also the masked ones, with position terms and cap.
/// `problem` is that of an OperandProblem.
template <class T>
void scores(const AttentionProblem<T>& problem, Index head, MatrixView<T> s) {
  MASQUE_CHECK(s.data != nullptr || s.empty());
  if (s.empty()) return;
  const Head<T> x = head_of(problem, head);
  const Operand<T> query(x.query, problem.bf16);
  const Operand<T> key(x.key, problem.bf16);
  for (Index i = 0; i < s.rows; ++i) {
    for (Index j = 0; j < s.columns; ++j) {
      T sum{};
      for (Index d = 0; d < x.query.columns; ++d) sum += query.view.at(i, d) * key.view.at(j, d);
      s.at(i, j) = sum * static_cast<T>(problem.scale);
    }
  }
  if (problem.bias != nullptr) {
    problem.bias->head(head, x.query, x.key)->add({0, s.rows}, {0, s.columns}, s);
  }
  if (problem.cap > 0) kernel::soft_cap(problem.cap, s);
}

/// f(x): the numerator that `map` makes of the shifted score `x`.
template <class T>
T map_score(ScoreMap map, const T& x) {
  using std::exp;
  switch (map) {
    case ScoreMap::kExp: return exp(x);
    case ScoreMap::kSquaredRelu: return real_part(x) > 0 ? x * x : T{};
    case ScoreMap::kSigmoid: break;
  }
  return kernel::reference::sigmoid_of(x);
}

/// What normalize_row() shifted the scores by and divided the numerators by.
template <class T>
struct RowDivision {
  double shift = 0;  ///< m_i, subtracted from t_i · s_ij
  T divisor{};       ///< d_i; 0: all weights are 0
};

/// Turns `row`, one row of scores, into weights by `normalizer`: 0 where `mask` hides a key.
/// Returns the shift and the divisor, which a `sink` (AttentionProblem::sinks) adds to.
template <class T>
RowDivision<T> normalize_row(const AttentionNormalizer& normalizer, const RowMask& mask,
                             std::span<T> row, const std::optional<T>& sink = std::nullopt) {
  using std::exp;
  using std::sqrt;
  const Index keys = static_cast<Index>(row.size());
  const T temperature = static_cast<T>(normalizer.temperature(mask.count()));
  const ScoreMap map = normalizer.map();
  const Divisor divisor = normalizer.divisor();
  double shift = 0;
  if (map == ScoreMap::kExp && divisor != Divisor::kConstant) {
    shift = sink ? real_part(*sink) : -HUGE_VAL;
    for (Index j = 0; j < keys; ++j) {
      T& x = row[static_cast<std::size_t>(j)];
      if (mask.visible(j)) shift = std::max(shift, real_part(temperature * x));
    }
  }
  T sum = sink ? exp(*sink - static_cast<T>(shift)) : T{};
  T squares{};
  for (Index j = 0; j < keys; ++j) {
    T& x = row[static_cast<std::size_t>(j)];
    x = mask.visible(j) ? map_score(map, temperature * x - static_cast<T>(shift)) : T{};
    sum += x;
    squares += x * x;
  }
  const T d = divisor == Divisor::kSum ? sum
              : divisor == Divisor::kRootSquares
                  ? sqrt(squares)
                  : static_cast<T>(normalizer.constant(mask.count()));
  if (mask.count() == 0 || real_part(d) == 0) {
    std::fill(row.begin(), row.end(), T{});
    return {};
  }
  for (T& x : row) x = x / d;
  return {shift, d};
}

}  // namespace reference

/// Sets `context` (T, heads · value size) to the attention of `given`: the definition of
/// evaluate_attention(). `visit`, if any, gets the weights of each head. Does not fill
/// `log_divisors` and `scores`.
template <class T>
void attention_reference(const AttentionProblem<T>& given, MatrixView<T> context,
                         const WeightsVisitor<T>& visit = {}) {
  const OperandProblem<T> operands(given);
  const AttentionProblem<T>& problem = operands.get();
  const Index queries = problem.query.rows;
  const Index keys = problem.key.rows;
  Matrix<T> weights(queries, keys);
  for (Index head = 0; head < problem.num_heads; ++head) {
    RowMask mask(mask::blocks_of_head(problem.blocks, head), keys);
    const reference::Operand<T> value(reference::head_of(problem, head).value, problem.bf16);
    const MatrixView<T> out = reference::columns_of(context, head, problem.num_heads);
    const MatrixView<T> a = weights.view();
    reference::scores(problem, head, a);
    for (Index i = 0; i < queries; ++i) {
      mask.read(i);
      reference::normalize_row<T>(*problem.normalizer, mask, a.row_span(i), sink_of(problem, head));
      const reference::Operand<T> weight(a.middle_rows(i, 1), problem.bf16);
      std::fill_n(out.row(i), out.columns, T{});
      for (Index j = 0; j < keys; ++j) {
        if (!mask.visible(j)) continue;
        for (Index d = 0; d < out.columns; ++d)
          out.at(i, d) += weight.view.at(0, j) * value.view.at(j, d);
      }
    }
    if (visit) visit(head, a);
  }
}

}  // namespace masque::nn
