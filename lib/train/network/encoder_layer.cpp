// The backward pass through a transformer layer (model/forward/layer_forward.hpp), and what its
// forward pass keeps.
#include <complex>
#include <optional>

#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "model/forward/layer_forward.hpp"
#include "train/network/encoder_run.hpp"
#include "train/network/scaled_columns.hpp"

namespace masque::train {

using model::NormPlacement;

namespace {

// Scratch matrices of a layer.
enum : std::size_t {
  kDFeedForward,
  kDSum,
  kDMiddle,
  kDContext,
  kDProjected,
  kDKeyValue,
  kDSource,
  kDNormed,
  kDWide,
  kActive,
  kDConvolved,
  kDBranch,
  kDActive,
  kInner
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
  const bool parallel = design_.norm_placement == NormPlacement::kParallel;
  const bool rezero = design_.norm_placement == NormPlacement::kReZero;
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
    branch_backward(
        l,
        norms_feed_forward_output(design_.norm_placement) ? &own.feed_forward_output_norm : nullptr,
        Role::kFeedForwardScale, tape.feed_forward_branch, d_out, d_last);
    kernel::add_to<T>(d_out, d_sum);
  }
  drop_backward(DropoutPlace::kFeedForward, l, stream, d_last);
  feed_forward_backward(l, tape, rezero ? tape.sum.view() : tape.middle.view(), d_last,
                        rezero ? d_sum : d_middle);
  if (rezero) {
    // The feed-forward layer reads the sum itself.
  } else if (post) {
    own.attention_norm.backward(tape.sum.view(), d_middle, d_sum);
  } else if (parallel) {
    own.feed_forward_norm.backward(x, d_middle, d_x);
  } else {
    own.feed_forward_norm.backward(tape.sum.view(), d_middle, d_sum);
  }
  // Attention.
  residual_backward(l, model::residual_scale(design_, l), Role::kAttentionResidual, x, d_sum, d_x);
  MatrixView<T> d_branch = d_sum;
  const bool normed = norms_attention_output(design_.norm_placement);
  if (rezero || normed) {
    d_branch = zeros(kDBranch, x.rows, x.columns);
    branch_backward(l, normed ? &own.attention_output_norm : nullptr, Role::kAttentionScale,
                    tape.attention_branch, d_sum, d_branch);
  }
  drop_backward(DropoutPlace::kAttention, l, stream, d_branch);
  const MatrixView<T> d_context = scratch(kDContext, x.rows, tape.context.columns());
  const bool scaled = scales_heads(design_);
  own.output.backward(scaled ? tape.scaled_context.view() : tape.context.view(), d_branch, false,
                      d_context);
  if (scaled) {
    scale_heads_backward<T>(tape.context.view(), matrix(Role::kHeadScale, l), d_context,
                            gradient(encoder_.map_.weight(Role::kHeadScale, weights_of(l))));
  }
  if (!norms_input(design_.norm_placement) || !design_.layers[at].input_norm) {
    attention_backward(l, stream, source, x, m, d_context, d_x, d_m);
    return earlier_backward(l, m, {});
  }
  const MatrixView<T> d_input = zeros(kDNormed, x.rows, x.columns);
  const bool same = &stream == &source;
  const MatrixView<T> d_source = same ? d_input : zeros(kDSource, m.rows, m.columns);
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

#define MASQUE_INSTANTIATE(T)                                                                      \
  template MatrixView<T> EncoderRun<T>::active_memory(model::LayerMemory<T>&, Index, Index) const; \
  template model::Projected<T> EncoderRun<T>::project(Index, Stream&, Stream&,                     \
                                                      MatrixView<const T>, MatrixView<const T>);
#define MASQUE_INSTANTIATE_BACKWARD(T)                                                      \
  template void EncoderRun<T>::layer_backward(Index, Stream&, Stream&, MatrixView<const T>, \
                                              MatrixView<const T>, MatrixView<T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
