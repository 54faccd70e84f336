#include "nn/attention/attention_gradients.hpp"
#include "nn/attention/materialized_attention_parts.hpp"

namespace masque::nn {

namespace {

using materialized::Heads;

template <class T>
std::vector<Matrix<T>> zeros(Index count, Index rows, Index columns) {
  std::vector<Matrix<T>> out;
  out.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) out.push_back(Matrix<T>::zero(rows, columns));
  return out;
}

/// Back through Λ, where `d` are the gradients by its results: adds to those by the heads of `x`,
/// and to d_lambda where it has data. Where all of `d` are 0, as they are at hidden pairs of
/// scores, x may be anything, also not finite.
template <class T>
void talk_backward(MatrixView<const T> lambda, const std::vector<Matrix<T>>& d,
                   const std::vector<Matrix<T>>& x, std::vector<Matrix<T>>& d_x,
                   MatrixView<T> d_lambda) {
  const Index rows = x.front().rows(), columns = x.front().columns();
  const Matrix<T> gradients = materialized::stack(d);
  Matrix<T> inputs = materialized::stack(x);
  for (Index pair = 0; pair < inputs.columns(); ++pair) {
    bool read = false;
    for (Index head = 0; head < gradients.rows(); ++head)
      read = read || gradients.view().at(head, pair) != T{};
    if (read) continue;
    for (Index head = 0; head < inputs.rows(); ++head) inputs.view().at(head, pair) = T{};
  }
  Matrix<T> d_inputs = Matrix<T>::zero(inputs.rows(), inputs.columns());
  kernel::matmul_backward<T>(gradients.view(), inputs.view(), lambda, {}, d_inputs.view());
  for (Index head = 0; head < d_inputs.rows(); ++head) {
    materialized::add_scaled<T>({d_inputs.view().row(head), rows, columns, columns},
                                static_cast<T>(1), d_x[static_cast<std::size_t>(head)].view());
  }
  if (d_lambda.data == nullptr) return;
  Matrix<T> by_lambda(lambda.rows, lambda.columns);
  kernel::matmul_forward<T>(gradients.view(), inputs.view(), by_lambda.view());
  materialized::add_scaled<T>(by_lambda.view(), static_cast<T>(1), d_lambda);
}

/// Gradients by the normalized weights of each head.
template <class T>
std::vector<Matrix<T>> values_backward(const MaterializedAttention<T>& attention,
                                       const Heads& heads, const MaterializedSaved<T>& saved,
                                       MatrixView<const T> d_context,
                                       const MaterializedGradients<T>& gradients) {
  const Index queries = attention.problem.query.rows;
  const Index keys = attention.problem.key.rows;
  std::vector<Matrix<T>> d_mixed = zeros<T>(heads.values, queries, keys);
  const std::vector<Matrix<T>> before =
      gradients.weight_terms == nullptr
          ? std::vector<Matrix<T>>()
          : materialized::talk(attention.talking_after, saved.normalized);
  for (Index head = 0; head < heads.values; ++head) {
    const Index group = reference::group_of(head, heads.values, heads.value_groups);
    const auto value = reference::columns_of(attention.problem.value, group, heads.value_groups);
    const auto d_out = reference::columns_of(d_context, head, heads.values);
    const MatrixView<const T> weights = saved.weights[static_cast<std::size_t>(head)].view();
    Matrix<T>& d_weights = d_mixed[static_cast<std::size_t>(head)];
    kernel::matmul_forward<T>(d_out, value, d_weights.view());
    if (gradients.value.data != nullptr) {
      kernel::matmul_backward<T>(d_out, value, weights, {},
                                 reference::columns_of(gradients.value, group, heads.value_groups));
    }
    if (gradients.value_terms != nullptr) {
      gradients.value_terms->add_backward(head, weights, d_out, d_weights.view());
    }
    if (gradients.weight_terms != nullptr) {
      gradients.weight_terms->multiply_backward(head, before[static_cast<std::size_t>(head)].view(),
                                                d_weights.view());
    }
  }
  std::vector<Matrix<T>> d_normalized;
  if (attention.talking_after.data == nullptr) {
    d_normalized = std::move(d_mixed);
  } else {
    d_normalized = zeros<T>(heads.weights, queries, keys);
    talk_backward<T>(attention.talking_after, d_mixed, saved.normalized, d_normalized,
                     gradients.talking_after);
  }
  for (std::size_t head = 0; head < gradients.normalized.size(); ++head)
    materialized::add_scaled(gradients.normalized[head], T{1}, d_normalized[head].view());
  return d_normalized;
}

/// Gradients by the scores before Λ_before, `previous` included.
template <class T>
std::vector<Matrix<T>> normalizer_backward(const MaterializedAttention<T>& attention,
                                           const Heads& heads, const std::vector<Matrix<T>>& scores,
                                           std::vector<Matrix<T>> d_normalized,
                                           const MaterializedGradients<T>& gradients) {
  const AttentionProblem<T>& problem = attention.problem;
  const bool talks = attention.talking_before.data != nullptr;
  const std::vector<Matrix<T>> all_mixed =
      talks ? materialized::talk(attention.talking_before, scores) : std::vector<Matrix<T>>();
  for (Index head = 0; head < heads.weights; ++head) {
    RowMask mask(mask::blocks_of_head(problem.blocks, head), problem.key.rows);
    const Matrix<T>& mixed = (talks ? all_mixed : scores)[static_cast<std::size_t>(head)];
    const MatrixView<T> d = d_normalized[static_cast<std::size_t>(head)].view();
    Matrix<T> weights = Matrix<T>::copy(mixed.view());
    for (Index i = 0; i < d.rows; ++i) {
      materialized::read_largest<T>(i, attention.largest, mixed.view().row_span(i), mask);
      const auto division =
          reference::normalize_row(*problem.normalizer, mask, weights.view().row_span(i));
      reference::normalize_row_backward<T>(*problem.normalizer, mask, mixed.view().row_span(i),
                                           weights.view().row_span(i), division, d.row_span(i));
    }
  }
  if (!talks) return d_normalized;
  std::vector<Matrix<T>> d_scores = zeros<T>(heads.scores, problem.query.rows, problem.key.rows);
  talk_backward<T>(attention.talking_before, d_normalized, scores, d_scores,
                   gradients.talking_before);
  return d_scores;
}

/// From gradients by the scores of a head to those by its query and key, position terms included.
template <class T>
void products_backward(const AttentionProblem<T>& problem, Index head, MatrixView<const T> d_scores,
                       const MaterializedGradients<T>& gradients, OperandGradients<T>& d_operands) {
  const reference::Head<T> x = reference::head_of(problem, head);
  const Index groups = problem.num_key_value_heads;
  const Index group = reference::group_of(head, problem.num_heads, groups);
  const MatrixView<T> d_query =
      reference::columns_of(d_operands.query.view(), head, problem.num_heads);
  const MatrixView<T> d_key = reference::columns_of(d_operands.key.view(), group, groups);
  Matrix<T> d_products = Matrix<T>::copy(d_scores);
  Matrix<T> d_capped;
  if (problem.cap > 0) {
    Matrix<T> own(d_scores.rows, d_scores.columns);
    reference::scores(problem, head, own.view());
    kernel::soft_cap_backward<T>(problem.cap, own.view(), d_products.view());
    d_capped = Matrix<T>::copy(d_products.view());
    d_scores = d_capped.view();
  }
  materialized::scale(d_products.view(), static_cast<T>(problem.scale));
  kernel::matmul_backward<T>(x.query, x.key, d_products.view(), d_query, d_key);
  if (gradients.bias != nullptr) {
    gradients.bias->backward(head, x.query, x.key, d_scores, d_query, d_key);
  }
}

}  // namespace

template <class T>
void materialized_attention_backward(const MaterializedAttention<T>& attention,
                                     const MaterializedSaved<T>& saved,
                                     MatrixView<const T> d_context,
                                     const MaterializedGradients<T>& gradients) {
  const Heads heads = materialized::heads_of(attention, d_context.rows, d_context.columns);
  MASQUE_CHECK((gradients.weight_terms == nullptr) == (attention.weight_terms == nullptr));
  MASQUE_CHECK((gradients.value_terms == nullptr) == (attention.value_terms == nullptr));
  MASQUE_CHECK(attention.problem.sinks.empty());
  MASQUE_CHECK(gradients.previous.empty() || !attention.previous.empty());
  MASQUE_CHECK(gradients.normalized.empty() || std::ssize(gradients.normalized) == heads.weights);
  const OperandProblem<T> operands(attention.problem);
  OperandGradients<T> d_operands(attention.problem);
  const std::vector<Matrix<T>> together = attention.pass_own_scores
                                              ? materialized::with_previous(attention, saved.scores)
                                              : std::vector<Matrix<T>>();
  const std::vector<Matrix<T>>& scores = attention.pass_own_scores ? together : saved.scores;
  std::vector<Matrix<T>> d_scores = normalizer_backward(
      attention, heads, scores, values_backward(attention, heads, saved, d_context, gradients),
      gradients);
  for (Index head = 0; head < heads.scores; ++head) {
    const auto at = static_cast<std::size_t>(head);
    const T one = static_cast<T>(1);
    // Handed on with `previous` the gradient from the next layer passes on to it, else it does not.
    const auto take_from_next = [&] {
      if (!gradients.scores.empty()) {
        materialized::add_scaled(gradients.scores[at], one, d_scores[at].view());
      }
    };
    if (!attention.pass_own_scores) take_from_next();
    if (!gradients.previous.empty()) {
      materialized::add_scaled<T>(d_scores[at].view(), one, gradients.previous[at]);
    }
    if (attention.pass_own_scores) take_from_next();
    products_backward<T>(operands.get(), head, d_scores[at].view(), gradients, d_operands);
  }
  d_operands.add_to(attention.problem, gradients.query, gradients.key);
}

template void materialized_attention_backward(const MaterializedAttention<float>&,
                                              const MaterializedSaved<float>&,
                                              MatrixView<const float>,
                                              const MaterializedGradients<float>&);
template void materialized_attention_backward(const MaterializedAttention<double>&,
                                              const MaterializedSaved<double>&,
                                              MatrixView<const double>,
                                              const MaterializedGradients<double>&);

}  // namespace masque::nn
