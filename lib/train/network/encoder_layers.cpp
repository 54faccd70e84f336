// EncoderRun: layers, gated units, mixers and DeBERTa's convolution, backward.
#include <complex>
#include <optional>

#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "kernel/parallel.hpp"
#include "model/forward/convolution_windows.hpp"
#include "model/forward/layer_forward.hpp"
#include "model/variants.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

using model::NormPlacement;

// Backward passes of the functions for columns in model/forward/layer_forward.hpp. Matrices of
// gradients that are not wanted have no data. Sums over rows are in the order of the rows.

namespace {

/// Backward pass of scale_columns() of `z`, with row `which` of `gamma`, and, without β, of
/// add_scaled_columns(): from `d_out`, adds to `d_z` and to row `which` of `d_gamma` and `d_beta`.
template <class T>
void scale_columns_backward(MatrixView<const T> z, MatrixView<const T> gamma, Index which,
                            MatrixView<const T> d_out, MatrixView<T> d_z, MatrixView<T> d_gamma,
                            MatrixView<T> d_beta) {
  const T* const scale = gamma.row(which);
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = d_out.row(i);
    T* to = d_z.row(i);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c] * scale[c];
  });
  for (Index i = 0; d_gamma.data != nullptr && i < z.rows; ++i) {
    const T* from = d_out.row(i);
    const T* x = z.row(i);
    T* to = d_gamma.row(which);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c] * x[c];
  }
  for (Index i = 0; d_beta.data != nullptr && i < z.rows; ++i) {
    const T* from = d_out.row(i);
    T* to = d_beta.row(which);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c];
  }
}

/// Backward pass of scale_heads() of `z` with the row `gamma`: `d_out` becomes the gradient of z;
/// adds to `d_gamma`.
template <class T>
void scale_heads_backward(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<T> d_out,
                          MatrixView<T> d_gamma) {
  const Index size = z.columns / gamma.columns;
  for (Index i = 0; d_gamma.data != nullptr && i < z.rows; ++i) {
    const T* from = d_out.row(i);
    const T* x = z.row(i);
    for (Index h = 0; h < gamma.columns; ++h) {
      T sum{};
      for (Index c = h * size; c < (h + 1) * size; ++c) sum += from[c] * x[c];
      d_gamma.at(0, h) += sum;
    }
  }
  kernel::for_rows(z.rows, z.columns, [&](Index i) {
    T* own = d_out.row(i);
    for (Index h = 0; h < gamma.columns; ++h) {
      const T scale = gamma.at(0, h);
      for (Index c = h * size; c < (h + 1) * size; ++c) own[c] *= scale;
    }
  });
}

}  // namespace

// The backward pass through a transformer layer (model/forward/layer_forward.hpp), and what its
// forward pass keeps.

namespace {

// Scratch matrices of a layer.
enum : std::size_t {
  kDFeedForward,
  kDSum,
  kDMiddle,
  kDContext,
  kDProjected,
  kDKeyValue,
  kDSourceStates,
  kDNormed,
  kDWide,
  kActive,
  kDConvolved,
  kDBranch,
  kDActive,
  kInner,
  kDScaled  // below kDDistanceKeys
};

}  // namespace

template <class T>
MatrixView<T> EncoderRun<T>::active_memory(model::LayerMemory<T>& own, Index rows,
                                           Index columns) const {
  if (encoder_.large_) return scratch(kActive, rows, columns);
  return model::resized(own.active, rows, columns);
}

template <class T>
model::Projected<T> EncoderRun<T>::project(Index l, Stream& stream, Stream& source,
                                           MatrixView<const T> input,
                                           MatrixView<const T> source_input) {
  LayerTape<T>& tape = memory(l, stream);
  const EncoderLayer<T>& own = layer(l);
  if (&stream == &source) {
    own.all.forward(input, model::resized(tape.projected, input.rows, own.all.outputs()));
  } else {
    own.query.forward(input, model::resized(tape.projected, input.rows, own.query.outputs()));
    own.key_value.forward(source_input, model::resized(tape.source_projected, source_input.rows,
                                                       own.key_value.outputs()));
  }
  return projected(tape, &stream == &source);
}

template <class T>
model::Projected<T> EncoderRun<T>::projected(LayerTape<T>& tape, bool same) const {
  return parts_of(tape.projected.view(),
                  same ? std::nullopt : std::optional(tape.source_projected.view()));
}

template <class T>
model::Projected<T> EncoderRun<T>::parts_of(MatrixView<T> query,
                                            std::optional<MatrixView<T>> both) const {
  const Index query_width = design_.num_attention_heads * design_.head_size;
  const Index key_width = design_.num_key_value_heads * design_.head_size;
  const MatrixView<T> rest =
      both ? *both : query.middle_columns(query_width, query.columns - query_width);
  return {query.middle_columns(0, query_width), rest.middle_columns(0, key_width),
          rest.middle_columns(key_width, rest.columns - key_width)};
}

template <class T>
void EncoderRun<T>::feed_forward_backward(Index l, LayerTape<T>& tape, MatrixView<const T> x,
                                          MatrixView<const T> d_y, MatrixView<T> d_x) {
  if (design_.layers[static_cast<std::size_t>(l)].experts)
    return experts_backward(l, tape.experts, x, d_y, d_x);
  const EncoderLayer<T>& own = layer(l);
  const Index inner = design_.intermediate_size;
  const bool normed = design_.norm_placement == NormPlacement::kNormFormer;
  // The same memory as d_context, which is made later.
  const MatrixView<T> d_active =
      normed ? zeros(kDContext, x.rows, inner) : scratch(kDContext, x.rows, inner);
  MatrixView<const T> active = tape.active.view();
  MatrixView<T> again;
  if (encoder_.large_ || normed) {
    again = scratch(kActive, x.rows, inner);
    model::activate<T>(design_, tape.wide.view(), again);
  }
  if (encoder_.large_) active = again;
  if (normed) {
    // What was kept is the norm; it reads the activation.
    const MatrixView<T> d_inner = scratch(kDActive, x.rows, inner);
    if (encoder_.large_) {
      const MatrixView<T> inner_norm = scratch(kInner, x.rows, inner);
      own.feed_forward_inner_norm.forward(again, inner_norm);
      active = inner_norm;
    }
    own.down.backward(active, d_y, false, d_inner);
    own.feed_forward_inner_norm.backward(again, d_inner, d_active);
  } else {
    own.down.backward(active, d_y, false, d_active);
  }
  if (!design_.gated) {
    kernel::activation_backward<T>(design_.activation, tape.wide.view(), d_active);
    return own.up.backward(x, d_active, true, d_x);
  }
  const MatrixView<T> d_wide = zeros(kDWide, x.rows, tape.wide.columns());
  kernel::gated_backward<T>(design_.activation, tape.wide.view().middle_columns(0, inner),
                            tape.wide.view().middle_columns(inner, inner), d_active,
                            d_wide.middle_columns(0, inner), d_wide.middle_columns(inner, inner));
  own.up.backward(x, d_wide, true, d_x);
}

template <class T>
void EncoderRun<T>::branch_backward(Index l, const TrainedNorm<T>* norm, Role scale,
                                    const Matrix<T>& branch, MatrixView<const T> d_sum,
                                    MatrixView<T> d_branch) {
  if (norm != nullptr) return norm->backward(branch.view(), d_sum, d_branch);
  if (design_.norm_placement != NormPlacement::kReZero) return kernel::add_to<T>(d_sum, d_branch);
  const T alpha = matrix(scale, l).at(0, 0);
  double slope = 0;
  for (Index i = 0; i < d_sum.rows; ++i) {
    const auto from = d_sum.row_span(i);
    const auto own = branch.view().row_span(i);
    const auto to = d_branch.row_span(i);
    for (std::size_t j = 0; j < from.size(); ++j) {
      slope += static_cast<double>(from[j]) * static_cast<double>(own[j]);
      to[j] += alpha * from[j];
    }
  }
  const MatrixView<T> d_alpha = gradient(encoder_.map_.weight(scale, weights_of(l)));
  if (d_alpha.rows > 0) d_alpha.at(0, 0) += static_cast<T>(slope);
}

template <class T>
void EncoderRun<T>::residual_backward(Index l, double alpha, Role scale, MatrixView<const T> x,
                                      MatrixView<const T> d_sum, MatrixView<T> d_x) {
  if (design_.norm_placement != NormPlacement::kAdmin) {
    if (alpha != 0) kernel::add_scaled<T>(alpha, d_sum, d_x);
    return;
  }
  scale_columns_backward<T>(x, matrix(scale, l), 0, d_sum, d_x,
                            gradient(encoder_.map_.weight(scale, weights_of(l))), {});
}

template <class T>
void EncoderRun<T>::layer_backward(Index l, Stream& stream, Stream& source, MatrixView<const T> m,
                                   MatrixView<const T> d_out, MatrixView<T> d_x,
                                   MatrixView<T> d_m) {
  if (design_.layer_kind == model::LayerKind::kGatedAttention)
    return gated_backward(l, stream, source, m, d_out, d_x, d_m);
  const auto at = static_cast<std::size_t>(l);
  LayerTape<T>& tape = memory(l, stream);
  const EncoderLayer<T>& own = layer(l);
  const MatrixView<const T> x = stream.x[at].view();
  const bool post = norms_sum(design_.norm_placement);
  const bool parallel = is_parallel(design_.norm_placement);
  const bool rezero = design_.norm_placement == NormPlacement::kReZero;
  const bool normed_middle = has_feed_forward_norm(design_.norm_placement);
  const bool reads_sum = !normed_middle && !parallel;
  const double multiplier = design_.residual_multiplier;
  // After the feed-forward layer.
  const MatrixView<T> d_sum = zeros(kDSum, x.rows, x.columns);
  const MatrixView<T> d_middle = zeros(kDMiddle, x.rows, x.columns);
  const MatrixView<T> d_last = zeros(kDFeedForward, x.rows, x.columns);
  if (post) {
    MatrixView<const T> d_end = d_out;
    if (!own.convolution.empty()) {
      const MatrixView<T> d_convolved = scratch(kDConvolved, x.rows, x.columns);
      convolve_backward(l, stream, x, d_out, d_convolved, d_x);
      d_end = d_convolved;
    }
    own.feed_forward_norm.backward(tape.last_sum.view(), d_end, d_last);
    residual_backward(l, design_.variants.residual_scale, Role::kFeedForwardResidual,
                      tape.middle.view(), d_last, d_middle);
  } else {
    MatrixView<const T> d_end = d_out;
    if (multiplier != 1) {
      const MatrixView<T> d_scaled = zeros(kDScaled, x.rows, x.columns);
      kernel::add_scaled<T>(multiplier, d_out, d_scaled);
      d_end = d_scaled;
    }
    branch_backward(
        l,
        norms_feed_forward_output(design_.norm_placement) ? &own.feed_forward_output_norm : nullptr,
        Role::kFeedForwardScale, tape.feed_forward_branch, d_end, d_last);
    kernel::add_to<T>(d_out, d_sum);
  }
  drop_backward(DropoutPlace::kFeedForward, l, stream, d_last);
  const Matrix<T>& middle = reads_sum ? tape.sum : normed_middle ? tape.middle : tape.normed;
  feed_forward_backward(l, tape, middle.view(), d_last, reads_sum ? d_sum : d_middle);
  if (post) {
    const MatrixView<const T> d_read =
        design_.source ? add_source_backward(l, stream, d_middle) : d_middle;
    own.attention_norm.backward(tape.sum.view(), d_read, d_sum);
  } else if (normed_middle) {
    const Matrix<T>& sum = design_.source ? tape.source_sum : tape.sum;
    own.feed_forward_norm.backward(parallel ? x : sum.view(), d_middle, parallel ? d_x : d_sum);
    if (design_.source) add_source_backward(l, stream, d_sum);
  }
  // Attention.
  residual_backward(l, model::residual_scale(design_, l), Role::kAttentionResidual, x, d_sum, d_x);
  if (multiplier != 1) model::scale_rows(multiplier, d_sum);
  MatrixView<T> d_branch = d_sum;
  const bool normed = norms_attention_output(design_.norm_placement);
  if (rezero || normed) {
    d_branch = zeros(kDBranch, x.rows, x.columns);
    branch_backward(l, normed ? &own.attention_output_norm : nullptr, Role::kAttentionScale,
                    tape.attention_branch, d_sum, d_branch);
  }
  drop_backward(DropoutPlace::kAttention, l, stream, d_branch);
  const bool scaled = scales_heads(design_);
  MatrixView<T> d_context = d_branch;
  if (!own.output.empty()) {
    d_context = scratch(kDContext, x.rows, tape.context.columns());
    own.output.backward(scaled ? tape.scaled_context.view() : tape.context.view(), d_branch, false,
                        d_context);
  }
  if (scaled) {
    scale_heads_backward<T>(tape.context.view(), matrix(Role::kHeadScale, l), d_context,
                            gradient(encoder_.map_.weight(Role::kHeadScale, weights_of(l))));
  }
  if (!norms_input(design_.norm_placement) || !design_.layers[at].input_norm) {
    attention_backward(l, stream, source, x, m, d_context, d_x, d_m);
    return earlier_backward(l, m, {});
  }
  const MatrixView<T> d_input = zeros(kDNormed, x.rows, x.columns);
  // Of one norm for both the feed-forward layer has read it, too.
  if (parallel && !normed_middle) kernel::add_to<T>(d_middle, d_input);
  const bool same = &stream == &source;
  const MatrixView<T> d_source = same ? d_input : zeros(kDSourceStates, m.rows, m.columns);
  attention_backward(l, stream, source, tape.normed.view(),
                     same ? tape.normed.view() : tape.source_normed.view(), d_context, d_input,
                     d_source);
  earlier_backward(l, m, same ? tape.normed.view() : tape.source_normed.view());
  if (!same) own.attention_norm.backward(m, d_source, d_m);
  own.attention_norm.backward(x, d_input, d_x);
}

template <class T>
void EncoderRun<T>::attention_backward(Index l, Stream& stream, Stream& source,
                                       MatrixView<const T> input, MatrixView<const T> m,
                                       MatrixView<const T> d_context, MatrixView<T> d_input,
                                       MatrixView<T> d_m) {
  const bool same = &stream == &source;
  if (encoder_.mixer_ != nullptr)
    return mix_backward(l, stream, same ? input : m, d_context, same ? d_input : d_m);
  LayerTape<T>& tape = memory(l, stream);
  const EncoderLayer<T>& own = layer(l);
  const MatrixView<T> d_query = scratch(kDProjected, input.rows, tape.projected.columns());
  std::optional<MatrixView<T>> d_both;
  if (!same) d_both = scratch(kDKeyValue, m.rows, tape.source_projected.columns());
  model::Projected<T> d_earlier;
  if (stops_at_blocks())
    d_earlier = parts_of(d_query, scratch(kDEarlier, m.rows, own.key_value.outputs()));
  attend_backward(l, stream, source, model::head_sizes(design_), projected(tape, same),
                  tape.context.view(), d_context, parts_of(d_query, d_both), d_earlier);
  if (same) return own.all.backward(input, d_query, true, d_input);
  own.query.backward(input, d_query, true, d_input);
  own.key_value.backward(m, *d_both, true, d_m);
}

// The backward pass through a gated attention unit (gated_layer_forward() in
// model/forward/layer_forward.hpp).

template <class T>
void EncoderRun<T>::gated_input_backward(Index l, MatrixView<const T> x, MatrixView<const T> normed,
                                         MatrixView<const T> d_raw, MatrixView<T> d_normed,
                                         MatrixView<T> d_x) {
  const EncoderLayer<T>& own = layer(l);
  if (norms_sum(design_.norm_placement)) return own.gated_input.backward(x, d_raw, true, d_x);
  own.gated_input.backward(normed, d_raw, false, d_normed);
  own.attention_norm.backward(x, d_normed, d_x);
}

template <class T>
void EncoderRun<T>::gated_backward(Index l, Stream& stream, Stream& source, MatrixView<const T> m,
                                   MatrixView<const T> d_out, MatrixView<T> d_x,
                                   MatrixView<T> d_m) {
  enum : std::size_t {
    kDSum,
    kDGated,
    kDContext,
    kDWide,
    kDSourceWide,
    kDQuery,
    kDKey,
    kDRaw,
    kDSourceRaw,
    kDNormed,
    kDSourceNormed
  };
  const auto at = static_cast<std::size_t>(l);
  LayerTape<T>& tape = memory(l, stream);
  const EncoderLayer<T>& own = layer(l);
  const Index w = weights_of(l);
  const MatrixView<const T> x = stream.x[at].view();
  const bool same = &stream == &source;
  const Index e = design_.intermediate_size, s = design_.attention_key_size;
  const MatrixView<T> d_sum = zeros(kDSum, x.rows, x.columns);
  const bool post = norms_sum(design_.norm_placement);
  if (post) {
    own.attention_norm.backward(tape.sum.view(), d_out, d_sum);
  } else {
    kernel::copy_rows<T>(d_out, d_sum);
  }
  if (const double alpha = model::residual_scale(design_, l); alpha != 0)
    kernel::add_scaled<T>(alpha, d_sum, d_x);
  drop_backward(DropoutPlace::kAttention, l, stream, d_sum);
  const MatrixView<T> d_gated = scratch(kDGated, x.rows, e);
  own.output.backward(tape.active.view(), d_sum, false, d_gated);
  const MatrixView<T> d_wide = zeros(kDWide, x.rows, 2 * e + s);
  const MatrixView<T> d_source = same ? d_wide : zeros(kDSourceWide, m.rows, 2 * e + s);
  const MatrixView<T> d_context = zeros(kDContext, x.rows, e);
  kernel::gated_backward<T>(kernel::Activation::kNone, tape.context.view(),
                            tape.wide.view().middle_columns(0, e), d_gated, d_context,
                            d_wide.middle_columns(0, e));
  const MatrixView<T> read = same ? tape.wide.view() : tape.source_projected.view();
  const MatrixView<T> d_query = scratch(kDQuery, x.rows, s);
  const MatrixView<T> d_key = scratch(kDKey, m.rows, s);
  attend_backward(l, stream, source, HeadSizes{1, 1, s, e},
                  {tape.queries.view(), tape.keys.view(), read.middle_columns(e, e)},
                  tape.context.view(), d_context, {d_query, d_key, d_source.middle_columns(e, e)},
                  {});
  const MatrixView<const T> gamma = matrix(Role::kGatedGamma, l);
  const auto d_gamma = gradient(encoder_.map_.weight(Role::kGatedGamma, w));
  const auto d_beta = gradient(encoder_.map_.weight(Role::kGatedBeta, w));
  scale_columns_backward<T>(tape.wide.view().middle_columns(2 * e, s), gamma, 0, d_query,
                            d_wide.middle_columns(2 * e, s), d_gamma, d_beta);
  scale_columns_backward<T>(read.middle_columns(2 * e, s), gamma, 1, d_key,
                            d_source.middle_columns(2 * e, s), d_gamma, d_beta);
  const MatrixView<T> d_raw = zeros(kDRaw, x.rows, 2 * e + s);
  kernel::activation_backward<T>(design_.activation, tape.gate.view(), d_wide, d_raw);
  gated_input_backward(l, x, tape.normed.view(), d_raw, scratch(kDNormed, x.rows, x.columns), d_x);
  if (same) return;
  const MatrixView<T> d_source_raw = zeros(kDSourceRaw, m.rows, 2 * e + s);
  kernel::activation_backward<T>(design_.activation, tape.source_gate.view(), d_source,
                                 d_source_raw);
  gated_input_backward(l, m, tape.source_normed.view(), d_source_raw,
                       scratch(kDSourceNormed, m.rows, m.columns), d_m);
}

// A mixer in place of attention, forward and backward.

namespace {

/// A mixer's problem for one sequence; `parameters` must stay.
template <class T>
nn::MixerProblem<T> mixer_problem(const nn::MixerShape& shape, MatrixView<const T> x,
                                  std::span<const MatrixView<const T>> parameters,
                                  const mask::BlockMap* blocks) {
  nn::MixerProblem<T> problem;
  problem.shape = shape;
  problem.x = x;
  problem.parameters = parameters;
  problem.blocks = blocks;
  return problem;
}

}  // namespace

template <class T>
void EncoderRun<T>::mix(Index l, Stream& stream, MatrixView<const T> x, MatrixView<T> y) {
  std::vector<MatrixView<const T>> parameters;
  for (std::size_t k = 0; k < encoder_.mixer_parameters_.size(); ++k) {
    parameters.push_back(
        value(encoder_.map_.weight(Role::kMixerPart, weights_of(l), static_cast<Index>(k))));
  }
  for (Index s = 0; s < stream.sequences(); ++s) {
    const Index begin = stream.begins[static_cast<std::size_t>(s)];
    const Index rows = stream.begins[static_cast<std::size_t>(s) + 1] - begin;
    encoder_.mixer_->forward(mixer_problem<T>(encoder_.mixer_shape_, x.middle_rows(begin, rows),
                                              parameters, blocks(l, stream, s)),
                             y.middle_rows(begin, rows));
  }
}

template <class T>
void EncoderRun<T>::mix_backward(Index l, Stream& stream, MatrixView<const T> x,
                                 MatrixView<const T> d_y, MatrixView<T> d_x) {
  std::vector<MatrixView<const T>> parameters;
  std::vector<MatrixView<T>> wanted;
  const std::vector<nn::MixerParameter>& list = encoder_.mixer_parameters_;
  for (std::size_t k = 0; k < list.size(); ++k) {
    const Index at = encoder_.map_.weight(Role::kMixerPart, weights_of(l), static_cast<Index>(k));
    parameters.push_back(value(at));
    wanted.push_back(list[k].trained ? gradient(at) : MatrixView<T>());
  }
  for (Index s = 0; s < stream.sequences(); ++s) {
    const Index begin = stream.begins[static_cast<std::size_t>(s)];
    const Index rows = stream.begins[static_cast<std::size_t>(s) + 1] - begin;
    nn::MixerGradients<T> gradients;
    gradients.x = d_x.middle_rows(begin, rows);
    gradients.parameters = wanted;
    encoder_.mixer_->backward(mixer_problem<T>(encoder_.mixer_shape_, x.middle_rows(begin, rows),
                                               parameters, blocks(l, stream, s)),
                              d_y.middle_rows(begin, rows), gradients);
  }
}

// The backward pass through the convolution next to the first layer of DeBERTa v2.

template <class T>
void EncoderRun<T>::convolve_backward(Index l, Stream& stream, MatrixView<const T> x,
                                      MatrixView<const T> d_y, MatrixView<T> d_sum,
                                      MatrixView<T> d_x) {
  LayerTape<T>& tape = memory(l, stream);
  zero_rows<T>(d_sum);
  layer(l).convolution_norm.backward(tape.convolution_sum.view(), d_y, d_sum);
  Matrix<T> d_convolved = Matrix<T>::zero(x.rows, x.columns);
  kernel::activation_backward<T>(design_.convolution_activation, tape.convolved.view(), d_sum,
                                 d_convolved.view());
  Matrix<T> windows(x.rows, x.columns * design_.convolution_size);
  model::convolution_windows<T>(x, stream.begins, design_.convolution_size, windows.view());
  Matrix<T> d_windows(windows.rows(), windows.columns());
  layer(l).convolution.backward(windows.view(), d_convolved.view(), false, d_windows.view());
  model::convolution_windows_backward<T>(d_windows.view(), stream.begins, design_.convolution_size,
                                         d_x);
}

#define MASQUE_INSTANTIATE(T)                                                                      \
  template MatrixView<T> EncoderRun<T>::active_memory(model::LayerMemory<T>&, Index, Index) const; \
  template model::Projected<T> EncoderRun<T>::project(Index, Stream&, Stream&,                     \
                                                      MatrixView<const T>, MatrixView<const T>);   \
  template model::Projected<T> EncoderRun<T>::parts_of(MatrixView<T>,                              \
                                                       std::optional<MatrixView<T>>) const;        \
  template void EncoderRun<T>::mix(Index, Stream&, MatrixView<const T>, MatrixView<T>);
#define MASQUE_INSTANTIATE_BACKWARD(T)                                                            \
  template void EncoderRun<T>::layer_backward(Index, Stream&, Stream&, MatrixView<const T>,       \
                                              MatrixView<const T>, MatrixView<T>, MatrixView<T>); \
  template void EncoderRun<T>::gated_backward(Index, Stream&, Stream&, MatrixView<const T>,       \
                                              MatrixView<const T>, MatrixView<T>, MatrixView<T>); \
  template void EncoderRun<T>::mix_backward(Index, Stream&, MatrixView<const T>,                  \
                                            MatrixView<const T>, MatrixView<T>);                  \
  template void EncoderRun<T>::convolve_backward(                                                 \
      Index, Stream&, MatrixView<const T>, MatrixView<const T>, MatrixView<T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
