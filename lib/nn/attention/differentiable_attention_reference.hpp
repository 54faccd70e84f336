// The forward pass of differentiable attention as it is defined, in plain loops. T is float, double
// or std::complex<double>, whose imaginary part carries a derivative.
#pragma once

#include "kernel/dropout.hpp"
#include "nn/attention/attention_reference.hpp"
#include "nn/attention/differentiable_attention.hpp"

namespace masque::nn {

/// Sets `context` to that of DifferentiableForward for `attention`. Memory: one (T, S) matrix.
/// Serial.
template <class T>
void differentiable_attention_reference(const DifferentiableAttention<T>& attention,
                                        MatrixView<T> context) {
  const OperandProblem<T> operands(attention.problem);
  const AttentionProblem<T>& problem = operands.get();
  const Index queries = problem.query.rows;
  const Index keys = problem.key.rows;
  Matrix<T> weights(queries, keys);
  const MatrixView<T> a = weights.view();
  for (Index head = 0; head < problem.num_heads; ++head) {
    RowMask mask(mask::blocks_of_head(problem.blocks, head), keys);
    const reference::Operand<T> value(reference::head_of(problem, head).value, problem.bf16);
    const MatrixView<T> out = reference::columns_of(context, head, problem.num_heads);
    reference::scores(problem, head, a);
    for (Index i = 0; i < queries; ++i) {
      mask.read(i);
      reference::normalize_row<T>(*problem.normalizer, mask, a.row_span(i), sink_of(problem, head));
    }
    if (attention.weight_terms != nullptr) attention.weight_terms->multiply(head, a);
    const auto first = static_cast<std::uint64_t>(head * queries * keys);
    kernel::dropout_forward(attention.dropout, attention.stream, first, a);
    for (Index i = 0; i < queries; ++i) {
      const reference::Operand<T> weight(a.middle_rows(i, 1), problem.bf16);
      std::fill_n(out.row(i), out.columns, T{});
      for (Index j = 0; j < keys; ++j) {
        for (Index d = 0; d < out.columns; ++d) {
          out.at(i, d) += weight.view.at(0, j) * value.view.at(j, d);
        }
      }
    }
    if (attention.value_terms != nullptr) attention.value_terms->add(head, a, out);
  }
}

}  // namespace masque::nn
