// A mixture of experts in the place of a feed-forward layer.
//
//   p = softmax(W_r x + b_r)      the k experts of the largest p; of equal ones the first
//   w_e = p_e, or p_e / Σ p of the chosen
//   y = Σ_e w_e · down_e(act(gate_e x) ⊙ up_e x)  [+ σ(w_s · x) · shared(x)]
//
// With ExpertsDesign::limit c the gate is min(gate, c) and `up` is 1 + min(max(up, −c), c).
//
// The choice is not differentiable; gradients go through w. A row's result depends on the row
// alone: no capacity, no dropped tokens.
#pragma once

#include <algorithm>
#include <numeric>

#include "kernel/activation.hpp"
#include "kernel/number/scalar.hpp"
#include "kernel/parallel.hpp"
#include "kernel/softmax/softmax_rows.hpp"
#include "model/design.hpp"
#include "model/forward/layer_memory.hpp"

namespace masque::model {

/// Fills begins, rows and weights of `own` from its probabilities: the experts that each row goes
/// through, as `experts` says.
template <class T>
void choose_experts(const ExpertsDesign& experts, ExpertMemory<T>& own) {
  const MatrixView<const T> p = own.probabilities.view();
  const Index chosen = experts.per_token;
  Matrix<T> memory(p.rows, chosen);
  const MatrixView<T> weights = memory.view();
  std::vector<Index> choice(static_cast<std::size_t>(p.rows * chosen));
  std::vector<Index> order(static_cast<std::size_t>(p.columns));
  own.begins.assign(static_cast<std::size_t>(p.columns + 1), 0);
  for (Index i = 0; i < p.rows; ++i) {
    const auto probability = [&](Index e) { return kernel::reference::real_part(p.at(i, e)); };
    std::iota(order.begin(), order.end(), Index{0});
    const auto last = order.begin() + static_cast<std::ptrdiff_t>(chosen);
    std::partial_sort(order.begin(), last, order.end(), [&](Index a, Index b) {
      return probability(a) != probability(b) ? probability(a) > probability(b) : a < b;
    });
    T sum{};
    for (Index k = 0; k < chosen; ++k) {
      const Index e = order[static_cast<std::size_t>(k)];
      choice[static_cast<std::size_t>(i * chosen + k)] = e;
      ++own.begins[static_cast<std::size_t>(e + 1)];
      weights.at(i, k) = p.at(i, e);
      sum += p.at(i, e);
    }
    for (Index k = 0; experts.normalized && k < chosen; ++k)
      weights.at(i, k) = weights.at(i, k) / sum;
  }
  std::partial_sum(own.begins.begin(), own.begins.end(), own.begins.begin());
  own.rows.resize(choice.size());
  const MatrixView<T> sorted = resized(own.weights, 1, p.rows * chosen);
  std::vector<Index> next(own.begins.begin(), own.begins.end() - 1);
  for (Index i = 0; i < p.rows; ++i) {
    for (Index k = 0; k < chosen; ++k) {
      const Index e = choice[static_cast<std::size_t>(i * chosen + k)];
      const Index pair = next[static_cast<std::size_t>(e)]++;
      own.rows[static_cast<std::size_t>(pair)] = i;
      sorted.at(0, pair) = weights.at(i, k);
    }
  }
}

/// Calls use(expert, first pair, pairs) for each expert of `own` that has pairs, in order.
template <class T, class Use>
void for_experts(const ExpertMemory<T>& own, const Use& use) {
  for (std::size_t e = 0; e + 1 < own.begins.size(); ++e) {
    const Index first = own.begins[e], count = own.begins[e + 1] - first;
    if (count > 0) use(static_cast<Index>(e), first, count);
  }
}

/// `bounded` ← `wide` (rows, 2 · columns), gate and up within `limit`, and 1 more for up; the two
/// may be one.
template <class T>
void bound_experts(double limit, MatrixView<const T> wide, MatrixView<T> bounded) {
  const T most = static_cast<T>(limit);
  const Index inner = wide.columns / 2;
  kernel::for_rows(wide.rows, wide.columns, [&](Index i) {
    for (Index c = 0; c < wide.columns; ++c) {
      T value = wide.at(i, c);
      const double real = kernel::reference::real_part(value);
      if (real > limit) value = most;
      if (c >= inner && real < -limit) value = -most;
      bounded.at(i, c) = c < inner ? value : value + T{1};
    }
  });
}

/// `active` (rows, intermediate size) ← act(gate) ⊙ up of `wide`, gate and up side by side, as
/// `design` says; `bounded` is memory for designs with a limit, and may be `wide`.
template <class T>
void activate_expert(const Design& design, MatrixView<const T> wide, MatrixView<T> bounded,
                     MatrixView<T> active) {
  if (const double limit = design.experts->limit; limit > 0) {
    bound_experts<T>(limit, wide, bounded);
    wide = bounded;
  }
  const Index inner = active.columns;
  kernel::gated_forward<T>(design.activation, wide.middle_columns(0, inner),
                           wide.middle_columns(inner, inner), active);
}

/// `y` ← the experts of layer `l` of `run` for the rows `x`, both (rows, hidden size); what they
/// compute is left in `own`.
template <class Run, class T>
void experts_forward(const Run& run, Index l, ExpertMemory<T>& own, MatrixView<const T> x,
                     MatrixView<T> y) {
  const Design& design = run.design();
  const ExpertsDesign& experts = *design.experts;
  const auto& weights = run.layer(l);
  const MatrixView<T> p = resized(own.probabilities, x.rows, experts.count);
  weights.router.forward(x, p);
  for (Index i = 0; i < p.rows; ++i) kernel::softmax_row<T>(p.row(i), p.columns, nullptr);
  choose_experts(experts, own);
  const Index pairs = x.rows * experts.per_token, inner = experts.intermediate_size;
  const MatrixView<T> inputs = resized(own.inputs, pairs, x.columns);
  const MatrixView<T> wide = resized(own.wide, pairs, 2 * inner);
  const MatrixView<T> active = resized(own.active, pairs, inner);
  const MatrixView<T> outputs = resized(own.outputs, pairs, x.columns);
  kernel::for_rows(pairs, x.columns, [&](Index pair) {
    std::copy_n(x.row(own.rows[static_cast<std::size_t>(pair)]), x.columns, inputs.row(pair));
  });
  for_experts(own, [&](Index e, Index first, Index count) {
    const auto at = static_cast<std::size_t>(e);
    weights.expert_up[at].forward(inputs.middle_rows(first, count), wide.middle_rows(first, count));
  });
  Matrix<T> bounded;
  if (experts.limit > 0) bounded = Matrix<T>(pairs, wide.columns);
  activate_expert<T>(design, wide, bounded.view(), active);
  for_experts(own, [&](Index e, Index first, Index count) {
    const auto at = static_cast<std::size_t>(e);
    weights.expert_down[at].forward(active.middle_rows(first, count),
                                    outputs.middle_rows(first, count));
  });
  for (Index i = 0; i < y.rows; ++i) std::fill_n(y.row(i), y.columns, T{});
  for (Index pair = 0; pair < pairs; ++pair) {
    const T weight = own.weights.view().at(0, pair);
    const T* const from = outputs.row(pair);
    T* const to = y.row(own.rows[static_cast<std::size_t>(pair)]);
    for (Index c = 0; c < y.columns; ++c) to[c] += weight * from[c];
  }
  if (experts.shared_intermediate_size == 0) return;
  const Index shared = experts.shared_intermediate_size;
  const MatrixView<T> shared_wide = resized(own.shared_wide, x.rows, 2 * shared);
  const MatrixView<T> shared_active = resized(own.shared_active, x.rows, shared);
  const MatrixView<T> shared_output = resized(own.shared_output, x.rows, x.columns);
  const MatrixView<T> shared_weight = resized(own.shared_weight, x.rows, 1);
  weights.shared_expert_up.forward(x, shared_wide);
  kernel::gated_forward<T>(design.activation, shared_wide.middle_columns(0, shared),
                           shared_wide.middle_columns(shared, shared), shared_active);
  weights.shared_expert_down.forward(shared_active, shared_output);
  weights.shared_expert_weight.forward(x, shared_weight);
  kernel::for_rows(x.rows, x.columns, [&](Index i) {
    T& weight = shared_weight.at(i, 0);
    weight = kernel::reference::sigmoid_of(weight);
    for (Index c = 0; c < y.columns; ++c) y.at(i, c) += weight * shared_output.at(i, c);
  });
}

}  // namespace masque::model
