// What the passes of materialized attention share.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel/product/linear.hpp"
#include "kernel/product/panel_product.hpp"
#include "nn/attention/attention_reference.hpp"
#include "nn/attention/materialized_attention.hpp"

namespace masque::nn::materialized {

/// Numbers of heads, checked against all shapes.
struct Heads {
  Index scores = 1;        ///< that q·k and the bias have
  Index weights = 1;       ///< heads of the normalized weights: rows of Λ_before
  Index values = 1;        ///< that meet the values: rows of Λ_after
  Index value_groups = 1;  ///< in the columns of the values
};

/// The numbers of heads of `attention`, after checks (MASQUE_CHECK) that all shapes fit each other
/// and a context of `context_rows` × `context_columns`.
template <class T>
Heads heads_of(const MaterializedAttention<T>& attention, Index context_rows,
               Index context_columns) {
  const AttentionProblem<T>& problem = attention.problem;
  const MatrixView<const T>& before = attention.talking_before;
  const MatrixView<const T>& after = attention.talking_after;
  Heads out;
  out.scores = problem.num_heads;
  out.weights = before.data == nullptr ? out.scores : before.rows;
  out.values = after.data == nullptr ? out.weights : after.rows;
  const Index keys = problem.num_key_value_heads;
  out.value_groups = attention.num_value_heads > 0 ? attention.num_value_heads : keys;
  MASQUE_CHECK(problem.normalizer != nullptr && !problem.bf16 && keys > 0);
  MASQUE_CHECK(out.scores % keys == 0 && out.values % out.value_groups == 0);
  MASQUE_CHECK(before.data == nullptr || before.columns == out.scores);
  MASQUE_CHECK(after.data == nullptr || after.columns == out.weights);
  MASQUE_CHECK(problem.query.columns % out.scores == 0 && problem.key.columns % keys == 0 &&
               problem.value.columns % out.value_groups == 0 && context_columns % out.values == 0);
  MASQUE_CHECK(problem.query.columns / out.scores == problem.key.columns / keys &&
               context_columns / out.values == problem.value.columns / out.value_groups);
  MASQUE_CHECK(problem.key.rows == problem.value.rows && context_rows == problem.query.rows);
  MASQUE_CHECK(attention.previous.empty() ||
               static_cast<Index>(attention.previous.size()) == out.scores);
  MASQUE_CHECK(problem.log_divisors.empty() || (problem.log_divisors.rows == out.weights &&
                                                problem.log_divisors.columns == context_rows));
  MASQUE_CHECK(problem.scores.empty() || (problem.scores.rows == out.weights * context_rows &&
                                          problem.scores.columns == problem.key.rows));
  MASQUE_CHECK(problem.blocks == nullptr ||
               problem.blocks->lengths() == (mask::Lengths{problem.query.rows, problem.key.rows}));
  // Where heads are mixed, pairs are those of no head.
  const bool by_head = problem.blocks != nullptr && problem.blocks->by_head();
  MASQUE_CHECK(!by_head || (before.data == nullptr && after.data == nullptr &&
                            problem.blocks->heads() == out.scores));
  return out;
}

/// `x` ← `factor` · x.
template <class T>
void scale(MatrixView<T> x, T factor) {
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.columns; ++j) x.at(i, j) *= factor;
  }
}

/// `to` += `factor` · `x`, of one shape.
template <class T>
void add_scaled(MatrixView<const T> x, T factor, MatrixView<T> to) {
  for (Index i = 0; i < to.rows; ++i) {
    for (Index j = 0; j < to.columns; ++j) to.at(i, j) += factor * x.at(i, j);
  }
}

/// The matrices of `x`, at least one and all of one shape, as the rows of one matrix.
template <class T>
Matrix<T> stack(const std::vector<Matrix<T>>& x) {
  const Index rows = x.front().rows(), columns = x.front().columns();
  Matrix<T> out(std::ssize(x), rows * columns);
  for (Index head = 0; head < out.rows(); ++head) {
    T* to = out.view().row(head);
    for (Index i = 0; i < rows; ++i)
      to = std::copy_n(x[static_cast<std::size_t>(head)].view().row(i), columns, to);
  }
  return out;
}

/// Λ = `lambda` times the heads in the rows of `x`. An element has the same bits for any number of
/// pairs, which kernel::matmul_plain does not promise in float.
template <class T>
Matrix<T> mix(MatrixView<const T> lambda, const Matrix<T>& x) {
  Matrix<T> out(lambda.rows, x.columns());
  if constexpr (std::is_same_v<T, float>) {
    std::vector<const float*> heads;
    kernel::panel::list_rows({{x.view()}}, heads);
    kernel::panel::Right right;
    right.pack(kernel::panel::Kind::kFloat, heads, x.columns());
    kernel::panel::multiply_right(lambda, right, kernel::Onto::kNothing, {}, out.view());
  } else {
    kernel::matmul_plain<T>(lambda, x.view(), out.view());
  }
  return out;
}

/// Λ = `lambda` times the heads of `x`, at least one: a matrix for each row of Λ; without Λ a copy
/// of `x`.
template <class T>
std::vector<Matrix<T>> talk(MatrixView<const T> lambda, const std::vector<Matrix<T>>& x) {
  std::vector<Matrix<T>> out;
  if (lambda.data == nullptr) {
    out.reserve(x.size());
    for (const Matrix<T>& one : x) out.push_back(Matrix<T>::copy(one.view()));
    return out;
  }
  const Index rows = x.front().rows(), columns = x.front().columns();
  const Matrix<T> mixed = mix(lambda, stack(x));
  out.reserve(static_cast<std::size_t>(lambda.rows));
  for (Index head = 0; head < lambda.rows; ++head)
    out.push_back(Matrix<T>::copy({mixed.view().row(head), rows, columns, columns}));
  return out;
}

/// Reads into `mask` what query `i` sees: of its visible keys those of the `largest`
/// scores in `scores`, of equal ones the first; 0: all. NaN counts as largest, so
/// that it stays in the result.
template <class T>
void read_largest(Index i, Index largest, std::span<const T> scores, RowMask& mask) {
  mask.read(i);
  if (largest == 0 || mask.count() <= largest) return;
  std::vector<std::pair<double, Index>> keys;
  for (Index j = 0; j < std::ssize(scores); ++j) {
    if (!mask.visible(j)) continue;
    const double score = reference::real_part(scores[static_cast<std::size_t>(j)]);
    keys.emplace_back(std::isnan(score) ? -HUGE_VAL : -score, j);
  }
  std::ranges::nth_element(keys, keys.begin() + largest);
  std::vector<Index> kept;
  for (Index k = 0; k < largest; ++k) kept.push_back(keys[static_cast<std::size_t>(k)].second);
  mask.keep(kept);
}

/// The scores `own` of each head before Λ_before, plus those of the layer before
/// where `attention` has them.
template <class T>
std::vector<Matrix<T>> with_previous(const MaterializedAttention<T>& attention,
                                     const std::vector<Matrix<T>>& own) {
  std::vector<Matrix<T>> out;
  out.reserve(own.size());
  for (std::size_t head = 0; head < own.size(); ++head) {
    out.push_back(Matrix<T>::copy(own[head].view()));
    if (!attention.previous.empty()) {
      add_scaled(attention.previous[head], static_cast<T>(1), out.back().view());
    }
  }
  return out;
}

}  // namespace masque::nn::materialized
