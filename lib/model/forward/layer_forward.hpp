// A transformer layer, and the gated attention unit that may take its place.
//
//   post-norm   s = α x + attention(x, m);   u = norm(s);  t = α u + ffn(u);  y = norm(t)
//   pre-norm    s = x + attention(norm(x), norm(m));       y = s + ffn(norm(s))
//   parallel    y = x + attention(norm(x), norm(m)) + ffn(norm(x)), shared: of one norm
//   output      s = x + norm(attention(x, m));             y = s + norm(ffn(s))
//   sandwich    s = x + norm'(attention(norm(x), norm(m))); y = s + norm'(ffn(norm(s)))
//   ReZero      s = x + α attention(x, m);                  y = s + α' ffn(s)
//   Admin       s = ω x + attention(x, m);   u = norm(s);  t = ω' u + ffn(u);  y = norm(t)
//   NormFormer  s = x + norm'(attention(norm(x), norm(m))); y = s + ffn(norm(s))
//               with a number for each head of attention and a norm in front of ffn's second
//               product
//
// A decoder that reads the states of an encoder (SourceDesign) has a third part in the middle:
// pre-norm s ← s + source(norm(s)), post-norm u ← norm(u + source(u)).
//
// What a part adds to the residual is multiplied by Design::residual_multiplier, but for the norms
// of sums.
//
// x: the states of the stream, m: those that keys and values are made of. A pass that keeps nothing
// writes y over x.
#pragma once

#include <algorithm>
#include <utility>

#include "kernel/activation.hpp"
#include "kernel/number/scalar.hpp"
#include "kernel/parallel.hpp"
#include "model/forward/convolution_windows.hpp"
#include "model/forward/experts_forward.hpp"
#include "model/forward/forward.hpp"
#include "model/forward/layer_memory.hpp"
#include "model/role.hpp"
#include "model/variants.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

// Columns of states times numbers that a layer has for them.

/// `out` ← γ ⊙ `z` + β, (rows, columns), with row `which` of `gamma` and `beta` (without data: 0).
template <class T>
void scale_columns(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<const T> beta,
                   Index which, MatrixView<T> out) {
  const T* const scale = gamma.row(which);
  const T* const shift = beta.data != nullptr ? beta.row(which) : nullptr;
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = z.row(i);
    T* to = out.row(i);
    for (Index c = 0; c < z.columns; ++c) to[c] = from[c] * scale[c];
    for (Index c = 0; shift != nullptr && c < z.columns; ++c) to[c] += shift[c];
  });
}

/// `out` ← out + γ ⊙ `z`, (rows, columns), with the row `gamma`.
template <class T>
void add_scaled_columns(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<T> out) {
  const T* const scale = gamma.row(0);
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = z.row(i);
    T* to = out.row(i);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c] * scale[c];
  });
}

/// `out` ← `z`, the columns of head h times element h of the row `gamma`. `out` may be `z`.
template <class T>
void scale_heads(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<T> out) {
  const Index size = z.columns / gamma.columns;
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = z.row(i);
    T* to = out.row(i);
    for (Index h = 0; h < gamma.columns; ++h) {
      const T scale = gamma.at(0, h);
      for (Index c = h * size; c < (h + 1) * size; ++c) to[c] = from[c] * scale;
    }
  });
}

// Gated attention units: one layer that is attention and feed-forward. Hua et al. 2022,
// arXiv:2202.10447; GAU-α's form, https://kexue.fm/archives/9052.
//
//   [U, V, Z] = act(x W_i)   Q = γ_q ⊙ Z + β_q   K = γ_k ⊙ Z + β_k
//   post-norm   y = norm(α x + (U ⊙ A V) W_o)
//   pre-norm    y = x + (U ⊙ A V) W_o, of norm(x) instead of x
//
// Where a stream reads another one, U and Q are made of its own rows, V and K of the others.

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
    residual<Run, T>(residual_scale(design, l), 1, x, branch, y);
  }
}

// The parts of a transformer layer.

/// `active` (rows, intermediate) ← what the second product of a feed-forward layer of `design`
/// reads, from `wide`, what the first one gives: as wide, or with a gate twice as wide, the gate
/// first.
template <class T>
void activate(const Design& design, MatrixView<const T> wide, MatrixView<T> active) {
  const Index inner = active.columns;
  if (design.gated) {
    kernel::gated_forward<T>(design.activation, wide.middle_columns(0, inner),
                             wide.middle_columns(inner, inner), active);
  } else {
    kernel::activation_forward<T>(design.activation, wide, active);
  }
}

/// `y` ← ffn(`x`) of layer `l`, both (rows, hidden size), in the memory `own`. Of `run`:
/// panel_rows(), rows that go through both products before the next ones; with kKeeps
/// active_memory(own, rows, columns).
template <class Run, class T>
void feed_forward(Run& run, Index l, LayerMemory<T>& own, MatrixView<const T> x, MatrixView<T> y) {
  const Design& design = run.design();
  if (design.layers[static_cast<std::size_t>(l)].experts)
    return experts_forward<Run, T>(run, l, own.experts, x, y);
  const auto& weights = run.layer(l);
  const Index wide = weights.up.outputs();
  const Index inner = design.gated ? wide / 2 : wide;
  const bool normed = design.norm_placement == NormPlacement::kNormFormer;
  if constexpr (Run::kKeeps) {
    weights.up.forward(x, resized(own.wide, x.rows, wide));
    const MatrixView<T> active = run.active_memory(own, x.rows, inner);
    activate<T>(design, own.wide.view(), active);
    if (normed) weights.feed_forward_inner_norm.forward(active, active);
    weights.down.forward(active, y);
  } else {
    // What lies between the products stays in the cache of one thread.
    const Index panel = std::min(run.panel_rows(), x.rows);
    own.wide.resize(panel, wide);
    for (Index first = 0; first < x.rows; first += panel) {
      const Index count = std::min(panel, x.rows - first);
      const MatrixView<T> between = own.wide.view().middle_rows(0, count);
      weights.up.forward(x.middle_rows(first, count),
                         between);  // with the activation, but for a gate
      const MatrixView<T> active = between.middle_columns(0, inner);
      if (design.gated) activate<T>(design, between, active);
      if (normed) weights.feed_forward_inner_norm.forward(active, active);
      weights.down.forward(active, y.middle_rows(first, count));
    }
  }
}

/// `x` ← its elements within ± `most`.
template <class T>
void clip_rows(double most, MatrixView<T> x) {
  const T bound = static_cast<T>(most);
  kernel::for_rows(x.rows, x.columns, [&](Index i) {
    for (T& value : x.row_span(i)) {
      // Of a complex step the slope is 0 beyond the bound.
      if (kernel::reference::real_part(value) > most) value = bound;
      if (kernel::reference::real_part(value) < -most) value = -bound;
    }
  });
}

/// Calls use(columns of a head or of all heads, first of them in the weights) for the parts of `x`
/// (rows, heads · `size`) that norms of `kind` see.
template <class T, class Use>
void for_normed_heads(QueryKeyNorm kind, Index size, MatrixView<T> x, const Use& use) {
  if (kind == QueryKeyNorm::kWidth) return use(x, Index{0});
  for (Index first = 0; first < x.columns; first += size)
    use(x.middle_columns(first, size), kind == QueryKeyNorm::kHead ? Index{0} : first);
}

/// Bounds and norms of what the projections of layer `l` of `run` gave, `projected` with the sizes
/// `heads`, in place. With kKeeps `own` has queries and keys in front of their norms.
template <class Run, class T>
void bound_and_norm(const Run& run, Index l, LayerMemory<T>& own, const HeadSizes& heads,
                    const Projected<T>& projected) {
  const Design& design = run.design();
  const bool clips = design.clip_qkv > 0;
  const bool norms = design.query_key_norm != QueryKeyNorm::kNone;
  if (!clips && !norms) return;
  const auto clip = [&] {
    clip_rows(design.clip_qkv, projected.query);
    if (projected.made) clip_rows(design.clip_qkv, projected.key);
    if (projected.made) clip_rows(design.clip_qkv, projected.value);
  };
  if (clips && !design.clip_after_norms) clip();
  if constexpr (Run::kKeeps) {
    for (const auto& [from, to] :
         {std::pair(projected.query, &own.raw_query), std::pair(projected.key, &own.raw_key)})
      kernel::copy_rows<T>(from, resized(*to, from.rows, from.columns));
  }
  if (!norms) return;
  const auto norm = [&](const auto& by, MatrixView<T> x) {
    for_normed_heads(
        design.query_key_norm, heads.head_size, x,
        [&](MatrixView<T> part, Index first) { by.forward_columns(first, part, part); });
  };
  norm(run.layer(l).query_norm, projected.query);
  if (projected.made) norm(run.layer(l).key_norm, projected.key);
  if (clips && design.clip_after_norms) clip();
}

/// run.memory(l, stream).sum ← the attention block of layer `l`, with its output projection.
/// `input` and `source_input` are what the projections read of `stream` and of `source`. Of `run`:
/// skips_attention(l), mixer(), and project_distances(l, stream) for attention with projected
/// distances.
template <class Run, class T>
void attention_block(Run& run, Index l, typename Run::Stream& stream, typename Run::Stream& source,
                     MatrixView<const T> input, MatrixView<const T> source_input) {
  const Design& design = run.design();
  LayerMemory<T>& own = run.memory(l, stream);
  own.sum.resize(input.rows, design.hidden_size);
  if (run.skips_attention(l)) {
    own.sum = Matrix<T>::zero(input.rows, design.hidden_size);
    return;
  }
  if (run.mixer() != nullptr) {
    // In T-TA it mixes the embeddings, which have as many rows.
    if (!design.variants.mixer_output) return run.mix(l, stream, source_input, own.sum.view());
    run.mix(l, stream, source_input, resized(own.context, input.rows, design.hidden_size));
  } else {
    const HeadSizes heads = head_sizes(design);
    const Projected<T> projected = run.project(l, stream, source, input, source_input);
    bound_and_norm<Run, T>(run, l, own, heads, projected);
    const RotaryDesign& rotary = design.layers[static_cast<std::size_t>(l)].rotary;
    if (design.position == PositionType::kRotary && !rotary.frequencies.empty()) {
      run.rotary().forward(rotary, stream, heads.head_size, projected.query);
      if (projected.made) {
        run.rotary().forward(rotary, source, heads.head_size, projected.key);
        if (rotary.values) run.rotary().forward(rotary, source, heads.head_size, projected.value);
      }
    }
    if (projected.made) run.project_distances(l, stream);
    run.attend(l, stream, source, heads, projected,
               resized(own.context, input.rows, context_width(design)));
  }
  MatrixView<T> read = own.context.view();
  if (scales_heads(design)) {
    if constexpr (Run::kKeeps) read = resized(own.scaled_context, read.rows, read.columns);
    scale_heads<T>(own.context.view(), run.matrix(Role::kHeadScale, l), read);
  }
  run.layer(l).output.forward(read, own.sum.view());
}

/// DeBERTa's convolution next to its first layer, `l` of `run`: `y` ← norm(y +
/// act(convolution(x))), `x` the layer's input (rows of `stream`, hidden size), zeros beyond a
/// sequence, in the memory `own`.
template <class Run, class T>
void add_convolution(Run& run, Index l, const typename Run::Stream& stream, LayerMemory<T>& own,
                     MatrixView<const T> x, MatrixView<T> y) {
  const Design& design = run.design();
  const auto& weights = run.layer(l);
  Matrix<T> windows(x.rows, x.columns * design.convolution_size);
  convolution_windows<T>(x, stream.begins, design.convolution_size, windows.view());
  const MatrixView<T> branch = resized(own.convolution_sum, x.rows, x.columns);
  weights.convolution.forward(windows.view(), branch);
  if constexpr (Run::kKeeps)
    kernel::copy_rows<T>(branch, resized(own.convolved, x.rows, x.columns));
  kernel::activation_forward<T>(design.convolution_activation, branch);
  residual_norm<Run, decltype(weights.convolution_norm), T>(weights.convolution_norm, 1, y, branch,
                                                            y);
}

/// `y` ← `norm`(α x + branch) as residual_norm(), with α = `alpha`; of Admin with the ω of layer
/// `l` of `run` that the role `scale` names, in its place.
template <class Run, class Norm, class T>
void add_and_norm(Run& run, Index l, const Norm& norm, double alpha, Role scale,
                  MatrixView<const T> x, MatrixView<T> branch, MatrixView<T> y) {
  if (run.design().norm_placement != NormPlacement::kAdmin)
    return residual_norm<Run, Norm, T>(norm, alpha, x, branch, y);
  add_scaled_columns<T>(x, run.matrix(scale, l), branch);
  norm.forward(branch, y);
}

/// The residual `alpha` · `x` and `branch`, what a part of layer `l` of `run` gives: as it is, its
/// `norm` (none: nullptr), or of ReZero its multiple by the number that the role `scale` names. As
/// residual(), with the memory `own` of `x`. `kept` ← the branch as it was, where a pass keeps it
/// and it is changed.
template <class Run, class Norm, class T>
MatrixView<T> add_branch(Run& run, Index l, const Norm* norm, double alpha, Role scale,
                         Matrix<T>& kept, MatrixView<const T> x, MatrixView<T> branch,
                         MatrixView<T> own) {
  const bool rezero = run.design().norm_placement == NormPlacement::kReZero;
  if (norm != nullptr || rezero) {
    if constexpr (Run::kKeeps)
      kernel::copy_rows<T>(branch, resized(kept, branch.rows, branch.columns));
    if (norm != nullptr) {
      norm->forward(branch, branch);
    } else {
      const T number = run.matrix(scale, l).at(0, 0);
      kernel::for_rows(branch.rows, branch.columns, [&](Index i) {
        for (T& value : branch.row_span(i)) value *= number;
      });
    }
  }
  return residual<Run, T>(alpha, run.design().residual_multiplier, x, branch, own);
}

/// The part of a decoder's layer `l` of `run` that reads the states of an encoder (SourceDesign),
/// for the rows of `stream`, in the memory `own`: u + source(norm(u)), whose view is returned; or
/// with norms_sum() norm(u + source(u)), in `y`. A pass that keeps nothing writes over `u`. Of
/// `run`: read_source(l, stream, input, context).
template <class Run, class T>
MatrixView<T> add_source_attention(Run& run, Index l, typename Run::Stream& stream,
                                   LayerMemory<T>& own, MatrixView<T> u, MatrixView<T> y) {
  const auto& weights = run.layer(l);
  const bool post = norms_sum(run.design().norm_placement);
  MatrixView<const T> input = u;
  if (!post) {
    const MatrixView<T> normed =
        resized(Run::kKeeps ? own.source_input : own.normed, u.rows, u.columns);
    weights.source_norm.forward(u, normed);
    input = normed;
  }
  const MatrixView<T> context =
      resized(Run::kKeeps ? own.source_context : own.context, u.rows, context_width(run.design()));
  run.read_source(l, stream, input, context);
  const MatrixView<T> branch = resized(Run::kKeeps ? own.source_sum : own.sum, u.rows, u.columns);
  weights.source_output.forward(context, branch);
  run.drop(DropoutPlace::kSource, l, stream, branch);
  if (!post) return residual<Run, T>(1, 1, u, branch, u);
  residual_norm<Run, decltype(weights.source_norm), T>(weights.source_norm, 1, u, branch, y);
  return y;
}

/// Fills run.states(l + 1, stream) from run.states(l, stream): layer `l` of `run` for the rows of
/// `stream`. `m` (rows, hidden size): the states of `source` that it reads.
template <class Run>
void layer_forward(Run& run, Index l, typename Run::Stream& stream, typename Run::Stream& source,
                   MatrixView<const typename Run::Number> m) {
  using T = typename Run::Number;
  const Design& design = run.design();
  const MatrixView<T> x = run.states(l, stream);
  const MatrixView<T> y = run.states(l + 1, stream);
  if (!Run::kKeeps && x.rows == 0) return;
  if (design.layer_kind == LayerKind::kGatedAttention)
    return gated_layer_forward(run, l, stream, source, m);
  const auto& weights = run.layer(l);
  LayerMemory<T>& own = run.memory(l, stream);
  const bool post = norms_sum(design.norm_placement);
  const bool convolved = !weights.convolution.empty();
  const Matrix<T> before = convolved && !Run::kKeeps ? Matrix<T>::copy(x) : Matrix<T>();
  MatrixView<const T> input = x;
  MatrixView<const T> source_input = m;
  if (norms_input(design.norm_placement) && design.layers[static_cast<std::size_t>(l)].input_norm) {
    const MatrixView<T> normed = resized(own.normed, x.rows, x.columns);
    weights.attention_norm.forward(x, normed);
    input = source_input = normed;
    if (&stream != &source) {
      const MatrixView<T> source_normed = resized(own.source_normed, m.rows, m.columns);
      weights.attention_norm.forward(m, source_normed);
      source_input = source_normed;
    }
  }
  attention_block<Run, T>(run, l, stream, source, input, source_input);
  const MatrixView<T> attended = own.sum.view();
  run.drop(DropoutPlace::kAttention, l, stream, attended);
  using Norm = decltype(weights.attention_norm);
  if (post) {
    const MatrixView<T> middle = Run::kKeeps ? resized(own.middle, x.rows, x.columns) : y;
    const MatrixView<T> read =
        Run::kKeeps && design.source ? resized(own.source_input, x.rows, x.columns) : middle;
    add_and_norm<Run, Norm, T>(run, l, weights.attention_norm, residual_scale(design, l),
                               Role::kAttentionResidual, x, attended, read);
    if (design.source) add_source_attention<Run, T>(run, l, stream, own, read, middle);
    const MatrixView<T> branch = Run::kKeeps ? resized(own.last_sum, x.rows, x.columns) : attended;
    feed_forward<Run, T>(run, l, own, middle, branch);
    run.drop(DropoutPlace::kFeedForward, l, stream, branch);
    add_and_norm<Run, Norm, T>(run, l, weights.feed_forward_norm, design.variants.residual_scale,
                               Role::kFeedForwardResidual, middle, branch, y);
    if (convolved) add_convolution<Run, T>(run, l, stream, own, Run::kKeeps ? x : before.view(), y);
    return;
  }
  const bool normed = has_feed_forward_norm(design.norm_placement);
  const bool parallel = is_parallel(design.norm_placement);
  MatrixView<T> middle;
  if (normed) middle = resized(Run::kKeeps ? own.middle : own.normed, x.rows, x.columns);
  if (parallel && normed) weights.feed_forward_norm.forward(x, middle);
  MatrixView<T> sum = add_branch<Run, Norm, T>(
      run, l,
      norms_attention_output(design.norm_placement) ? &weights.attention_output_norm : nullptr,
      residual_scale(design, l), Role::kAttentionScale, own.attention_branch, x, attended, y);
  if (design.source) sum = add_source_attention<Run, T>(run, l, stream, own, sum, {});
  if (normed && !parallel) weights.feed_forward_norm.forward(sum, middle);
  if (!normed) middle = parallel ? own.normed.view() : sum;
  const MatrixView<T> branch = Run::kKeeps ? y : attended;
  feed_forward<Run, T>(run, l, own, middle, branch);
  run.drop(DropoutPlace::kFeedForward, l, stream, branch);
  add_branch<Run, Norm, T>(run, l,
                           norms_feed_forward_output(design.norm_placement)
                               ? &weights.feed_forward_output_norm
                               : nullptr,
                           1, Role::kFeedForwardScale, own.feed_forward_branch, sum, branch, y);
}

}  // namespace masque::model
