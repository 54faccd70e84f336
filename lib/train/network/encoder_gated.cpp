// The backward pass through a gated attention unit (model/forward/gated_layer_forward.hpp).
#include "kernel/activation.hpp"
#include "model/variants.hpp"
#include "train/network/encoder_run.hpp"
#include "train/network/scaled_columns.hpp"

namespace masque::train {

namespace {

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

}  // namespace

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

template void EncoderRun<float>::gated_backward(Index, Stream&, Stream&, MatrixView<const float>,
                                                MatrixView<const float>, MatrixView<float>,
                                                MatrixView<float>);
template void EncoderRun<double>::gated_backward(Index, Stream&, Stream&, MatrixView<const double>,
                                                 MatrixView<const double>, MatrixView<double>,
                                                 MatrixView<double>);

}  // namespace masque::train
