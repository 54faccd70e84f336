#include "nn/attention/materialized_attention_parts.hpp"

namespace masque::nn {

namespace {

using materialized::Heads;

/// The scores of each head of this layer alone.
template <class T>
std::vector<Matrix<T>> own_scores(const AttentionProblem<T>& problem) {
  std::vector<Matrix<T>> out;
  out.reserve(static_cast<std::size_t>(problem.num_heads));
  for (Index head = 0; head < problem.num_heads; ++head) {
    out.emplace_back(problem.query.rows, problem.key.rows);
    if (!out.back().view().empty()) reference::scores(problem, head, out.back().view());
  }
  return out;
}

/// AttentionProblem::scores of row `i` of `head`, where they are wanted.
template <class T>
void note_scores(const AttentionProblem<T>& problem, Index head, Index i, const RowMask& mask,
                 std::span<const T> row) {
  if (problem.scores.empty()) return;
  const T temperature = static_cast<T>(problem.normalizer->temperature(mask.count()));
  const std::span<T> to = problem.scores.row_span(head * problem.query.rows + i);
  for (Index j = 0; j < std::ssize(row); ++j) {
    const auto at = static_cast<std::size_t>(j);
    to[at] = mask.visible(j) ? temperature * row[at] : static_cast<T>(-HUGE_VAL);
  }
}

template <class T>
std::vector<Matrix<T>> normalize(const MaterializedAttention<T>& attention, const Heads& heads,
                                 const std::vector<Matrix<T>>& scores) {
  const AttentionProblem<T>& problem = attention.problem;
  std::vector<Matrix<T>> out = materialized::talk(attention.talking_before, scores);
  for (Index head = 0; head < heads.weights; ++head) {
    RowMask mask(mask::blocks_of_head(problem.blocks, head), problem.key.rows);
    const MatrixView<T> weights = out[static_cast<std::size_t>(head)].view();
    for (Index i = 0; i < weights.rows; ++i) {
      const std::span<T> row = weights.row_span(i);
      materialized::read_largest<T>(i, attention.largest, row, mask);
      note_scores<T>(problem, head, i, mask, row);
      const auto division =
          reference::normalize_row<T>(*problem.normalizer, mask, row, sink_of(problem, head));
      if (!problem.log_divisors.empty()) {
        using std::log;
        problem.log_divisors.at(head, i) = log(division.divisor) + static_cast<T>(division.shift);
      }
    }
  }
  return out;
}

/// out (T, value size) = a v over visible pairs.
template <class T>
void multiply_values(MatrixView<const T> a, MatrixView<const T> value, const mask::BlockMap* blocks,
                     MatrixView<T> out) {
  RowMask mask(blocks, value.rows);
  for (Index i = 0; i < out.rows; ++i) {
    mask.read(i);
    std::fill_n(out.row(i), out.columns, T{});
    for (Index j = 0; j < value.rows; ++j) {
      if (!mask.visible(j)) continue;
      for (Index e = 0; e < out.columns; ++e) out.at(i, e) += a.at(i, j) * value.at(j, e);
    }
  }
}

}  // namespace

template <class T>
void materialized_attention_forward(const MaterializedAttention<T>& attention,
                                    MatrixView<T> context, MaterializedSaved<T>* saved) {
  const Heads heads = materialized::heads_of(attention, context.rows, context.columns);
  const OperandProblem<T> operands(attention.problem);
  MaterializedSaved<T> parts;
  std::vector<Matrix<T>> own = own_scores(operands.get());
  std::vector<Matrix<T>> scores = materialized::with_previous(attention, own);
  parts.normalized = normalize(attention, heads, scores);
  parts.scores = std::move(attention.pass_own_scores ? own : scores);
  parts.weights = materialized::talk(attention.talking_after, parts.normalized);
  for (Index head = 0; head < heads.values; ++head) {
    Matrix<T>& weights = parts.weights[static_cast<std::size_t>(head)];
    if (attention.weight_terms != nullptr) attention.weight_terms->multiply(head, weights.view());
    const Index group = reference::group_of(head, heads.values, heads.value_groups);
    const MatrixView<T> out = reference::columns_of(context, head, heads.values);
    multiply_values<T>(weights.view(),
                       reference::columns_of(attention.problem.value, group, heads.value_groups),
                       mask::blocks_of_head(attention.problem.blocks, head), out);
    if (attention.value_terms != nullptr) attention.value_terms->add(head, weights.view(), out);
  }
  if (saved != nullptr) *saved = std::move(parts);
}

template void materialized_attention_forward(const MaterializedAttention<float>&, MatrixView<float>,
                                             MaterializedSaved<float>*);
template void materialized_attention_forward(const MaterializedAttention<double>&,
                                             MatrixView<double>, MaterializedSaved<double>*);
template void materialized_attention_forward(const MaterializedAttention<std::complex<double>>&,
                                             MatrixView<std::complex<double>>,
                                             MaterializedSaved<std::complex<double>>*);

}  // namespace masque::nn
