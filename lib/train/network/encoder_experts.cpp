// EncoderRun: a mixture of experts, backward (model/forward/experts_forward.hpp).
#include <algorithm>
#include <cmath>

#include "kernel/activation.hpp"
#include "kernel/softmax/softmax_rows.hpp"
#include "model/forward/experts_forward.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

namespace {

/// Backward pass of kernel::gated_forward with gate and up side by side in `wide`: `d_wide` ← the
/// gradient by it, from `d_active`.
template <class T>
void gate_backward(kernel::Activation activation, MatrixView<const T> wide,
                   MatrixView<const T> d_active, MatrixView<T> d_wide) {
  const Index inner = d_active.columns;
  zero_rows<T>(d_wide);
  kernel::gated_backward<T>(activation, wide.middle_columns(0, inner),
                            wide.middle_columns(inner, inner), d_active,
                            d_wide.middle_columns(0, inner), d_wide.middle_columns(inner, inner));
}

/// Backward pass of model::bound_experts() of `wide`: `d` becomes the gradient by it.
template <class T>
void bound_backward(double limit, MatrixView<const T> wide, MatrixView<T> d) {
  const Index inner = wide.columns / 2;
  for (Index i = 0; i < wide.rows; ++i) {
    for (Index c = 0; c < wide.columns; ++c) {
      const double value = wide.at(i, c);
      if (value > limit || (c >= inner && value < -limit)) d.at(i, c) = T{};
    }
  }
}

/// From `d_weights`, the gradients by the weight of each pair of `memory`, `d_logits` (rows,
/// experts) ← those by what the softmax of the router read.
template <class T>
void router_backward(const model::ExpertsDesign& experts, const model::ExpertMemory<T>& memory,
                     std::span<const T> d_weights, MatrixView<T> d_logits) {
  const MatrixView<const T> p = memory.probabilities.view();
  Matrix<T> d_p = Matrix<T>::zero(p.rows, p.columns);
  // Of each row: Σ p of the chosen, and Σ w d_w.
  Matrix<T> sums = Matrix<T>::zero(p.rows, 2);
  const auto for_pairs = [&](const auto& use) {
    model::for_experts(memory, [&](Index e, Index first, Index count) {
      for (Index pair = first; pair < first + count; ++pair)
        use(memory.rows[static_cast<std::size_t>(pair)], e, pair);
    });
  };
  for_pairs([&](Index row, Index e, Index pair) {
    sums.view().at(row, 0) += p.at(row, e);
    sums.view().at(row, 1) +=
        memory.weights.view().at(0, pair) * d_weights[static_cast<std::size_t>(pair)];
  });
  for_pairs([&](Index row, Index e, Index pair) {
    const T d = d_weights[static_cast<std::size_t>(pair)];
    d_p.view().at(row, e) =
        experts.normalized ? (d - sums.view().at(row, 1)) / sums.view().at(row, 0) : d;
  });
  zero_rows<T>(d_logits);
  for (Index i = 0; i < p.rows; ++i)
    kernel::softmax_row_backward(p.row(i), d_p.view().row(i), p.columns, d_logits.row(i));
}

}  // namespace

template <class T>
void EncoderRun<T>::experts_backward(Index l, model::ExpertMemory<T>& memory, MatrixView<const T> x,
                                     MatrixView<const T> d_y, MatrixView<T> d_x) {
  const model::ExpertsDesign& experts = *design_.experts;
  const EncoderLayer<T>& own = layer(l);
  const Index pairs = std::ssize(memory.rows);
  const MatrixView<const T> wide = memory.wide.view();
  Matrix<T> d_outputs(pairs, x.columns), d_active(pairs, experts.intermediate_size);
  Matrix<T> d_wide(pairs, wide.columns), d_inputs(pairs, x.columns);
  std::vector<T> d_weights(static_cast<std::size_t>(pairs));
  for (Index pair = 0; pair < pairs; ++pair) {
    const T* const d = d_y.row(memory.rows[static_cast<std::size_t>(pair)]);
    const T* const output = memory.outputs.view().row(pair);
    const T weight = memory.weights.view().at(0, pair);
    T sum{};
    for (Index c = 0; c < x.columns; ++c) {
      sum += d[c] * output[c];
      d_outputs.view().at(pair, c) = weight * d[c];
    }
    d_weights[static_cast<std::size_t>(pair)] = sum;
  }
  model::for_experts(memory, [&](Index e, Index first, Index count) {
    own.expert_down[static_cast<std::size_t>(e)].backward(
        memory.active.view().middle_rows(first, count), d_outputs.view().middle_rows(first, count),
        false, d_active.view().middle_rows(first, count));
  });
  if (experts.limit > 0) {
    Matrix<T> bounded(pairs, wide.columns);
    model::bound_experts<T>(experts.limit, wide, bounded.view());
    gate_backward<T>(design_.activation, bounded.view(), d_active.view(), d_wide.view());
    bound_backward<T>(experts.limit, wide, d_wide.view());
  } else {
    gate_backward<T>(design_.activation, wide, d_active.view(), d_wide.view());
  }
  model::for_experts(memory, [&](Index e, Index first, Index count) {
    own.expert_up[static_cast<std::size_t>(e)].backward(
        memory.inputs.view().middle_rows(first, count), d_wide.view().middle_rows(first, count),
        false, d_inputs.view().middle_rows(first, count));
  });
  for (Index pair = 0; pair < pairs; ++pair) {
    T* const to = d_x.row(memory.rows[static_cast<std::size_t>(pair)]);
    for (Index c = 0; c < x.columns; ++c) to[c] += d_inputs.view().at(pair, c);
  }
  Matrix<T> d_logits(x.rows, experts.count);
  router_backward<T>(experts, memory, d_weights, d_logits.view());
  own.router.backward(x, d_logits.view(), true, d_x);
  if (experts.shared_intermediate_size == 0) return;
  const MatrixView<const T> output = memory.shared_output.view();
  Matrix<T> d_output(x.rows, x.columns), d_weight(x.rows, 1);
  for (Index i = 0; i < x.rows; ++i) {
    const T weight = memory.shared_weight.view().at(i, 0);
    T sum{};
    for (Index c = 0; c < x.columns; ++c) {
      sum += d_y.at(i, c) * output.at(i, c);
      d_output.view().at(i, c) = weight * d_y.at(i, c);
    }
    d_weight.view().at(i, 0) = sum * weight * (T{1} - weight);
  }
  own.shared_expert_weight.backward(x, d_weight.view(), true, d_x);
  Matrix<T> d_shared_active(x.rows, experts.shared_intermediate_size);
  own.shared_expert_down.backward(memory.shared_active.view(), d_output.view(), false,
                                  d_shared_active.view());
  Matrix<T> d_shared_wide(x.rows, memory.shared_wide.columns());
  gate_backward<T>(design_.activation, memory.shared_wide.view(), d_shared_active.view(),
                   d_shared_wide.view());
  own.shared_expert_up.backward(x, d_shared_wide.view(), true, d_x);
}

template void EncoderRun<float>::experts_backward(Index, model::ExpertMemory<float>&,
                                                  MatrixView<const float>, MatrixView<const float>,
                                                  MatrixView<float>);
template void EncoderRun<double>::experts_backward(Index, model::ExpertMemory<double>&,
                                                   MatrixView<const double>,
                                                   MatrixView<const double>, MatrixView<double>);

}  // namespace masque::train
