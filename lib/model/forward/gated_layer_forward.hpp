// Gated attention units: one layer that is attention and feed-forward. Hua et al. 2022,
// arXiv:2202.10447; GAU-α's form, https://kexue.fm/archives/9052.
//
//   [U, V, Z] = act(x W_i)   Q = γ_q ⊙ Z + β_q   K = γ_k ⊙ Z + β_k
//   post-norm   y = norm(α x + (U ⊙ A V) W_o)
//   pre-norm    y = x + (U ⊙ A V) W_o, of norm(x) instead of x
//
// Of a stream that reads another one, U and Q are made of its own rows, V and K of the others.
#pragma once

#include <algorithm>

#include "kernel/activation.hpp"
#include "kernel/parallel.hpp"
#include "model/forward/forward.hpp"
#include "model/forward/layer_memory.hpp"
#include "model/forward/scaled_columns.hpp"
#include "model/role.hpp"
#include "model/variants.hpp"

namespace masque::model {

/// Fills run.states(l + 1, stream) of a gated attention unit: layer `l` of `run`, for the rows of
/// `stream`, from `m`, the states of `source` that it reads.
template <class Run>
void gated_layer_forward(Run& run, Index l, typename Run::Stream& stream,
                         typename Run::Stream& source, MatrixView<const typename Run::Number> m) {
  using T = typename Run::Number;
  const Design& design = run.design();
  const auto& weights = run.layer(l);
  LayerMemory<T>& own = run.memory(l, stream);
  const MatrixView<T> x = run.states(l, stream);
  const MatrixView<T> y = run.states(l + 1, stream);
  const bool post = norms_sum(design.norm_placement);
  const MatrixView<T> branch = post || !Run::kKeeps ? resized(own.sum, x.rows, x.columns) : y;
  if (run.skips_attention(l)) {
    for (Index i = 0; i < branch.rows; ++i) std::ranges::fill(branch.row_span(i), T{});
  } else {
    const bool same = &stream == &source;
    MatrixView<const T> input = x;
    MatrixView<const T> source_input = m;
    if (!post) {
      input = resized(own.normed, x.rows, x.columns);
      weights.attention_norm.forward(x, own.normed.view());
      if (!same) {
        source_input = resized(own.source_normed, m.rows, m.columns);
        weights.attention_norm.forward(m, own.source_normed.view());
      }
    }
    activated_product<Run::kKeeps, T>(weights.gated_input, design.activation, input, own.gate,
                                      own.wide);
    if (!same) {
      activated_product<Run::kKeeps, T>(weights.gated_input, design.activation, source_input,
                                        own.source_gate, own.source_projected);
    }
    const MatrixView<T> read = same ? own.wide.view() : own.source_projected.view();
    const Index s = design.attention_key_size;
    const Index e = (own.wide.columns() - s) / 2;
    const MatrixView<const T> gamma = run.matrix(Role::kGatedGamma, l);
    const MatrixView<const T> beta = run.matrix(Role::kGatedBeta, l);
    const Projected<T> projected{resized(own.queries, x.rows, s), resized(own.keys, read.rows, s),
                                 read.middle_columns(e, e)};
    scale_columns<T>(own.wide.view().middle_columns(2 * e, s), gamma, beta, 0, projected.query);
    scale_columns<T>(read.middle_columns(2 * e, s), gamma, beta, 1, projected.key);
    if (design.position == PositionType::kRotary) {
      const RotaryDesign& rotary = design.layers[static_cast<std::size_t>(l)].rotary;
      run.rotary().forward(rotary, stream, s, projected.query);
      run.rotary().forward(rotary, source, s, projected.key);
    }
    const MatrixView<T> context = resized(own.context, x.rows, e);
    run.attend(l, stream, source, HeadSizes{1, 1, s, e}, projected, context);
    const MatrixView<T> active = Run::kKeeps ? resized(own.active, x.rows, e) : context;
    kernel::gated_forward<T>(kernel::Activation::kNone, context,
                             own.wide.view().middle_columns(0, e), active);
    weights.output.forward(active, branch);
  }
  run.drop(DropoutPlace::kAttention, l, stream, branch);
  if (post) {
    residual_norm<Run, decltype(weights.attention_norm), T>(
        weights.attention_norm, residual_scale(design, l), x, branch, y);
  } else {
    residual<Run, T>(residual_scale(design, l), x, branch, y);
  }
}

}  // namespace masque::model
