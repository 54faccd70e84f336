// Gated attention units, forward and backward. Hua et al. 2022, arXiv:2202.10447.
//
//   [U, V, Z] = act(x W_i)   Q = γ_q ⊙ Z + β_q   K = γ_k ⊙ Z + β_k
//   post-norm   y = norm(α x + (U ⊙ A V) W_o)
//   pre-norm    y = x + (U ⊙ A V) W_o, of norm(x) in place of x
//
// Of a stream that reads another one, U and Q are made of its own rows, V and K of the others.
#include <complex>

#include "kernel/activation.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

namespace {

enum : std::size_t {
  kDSum,
  kDGated,
  kDContext,
  kDWide,
  kDMemoryWide,
  kDQuery,
  kDKey,
  kDRaw,
  kDMemoryRaw,
  kDNormed,
  kDMemoryNormed
};

template <class T>
void scale_columns(MatrixView<const T> z, MatrixView<const T> gamma, MatrixView<const T> beta,
                   Index which, MatrixView<T> out) {
  const T* const scale = gamma.row(which);
  const T* const shift = beta.data != nullptr ? beta.row(which) : nullptr;
  for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = z.row(i);
    T* to = out.row(i);
    for (Index c = 0; c < z.columns; ++c) to[c] = from[c] * scale[c];
    for (Index c = 0; shift != nullptr && c < z.columns; ++c) to[c] += shift[c];
  });
}

template <class T>
void scale_columns_backward(MatrixView<const T> z, MatrixView<const T> gamma, Index which,
                            MatrixView<const T> d_out, MatrixView<T> d_z, MatrixView<T> d_gamma,
                            MatrixView<T> d_beta) {
  const T* const scale = gamma.row(which);
  for_rows(z.rows, z.columns, [&](Index i) {
    const T* from = d_out.row(i);
    T* to = d_z.row(i);
    for (Index c = 0; c < z.columns; ++c) to[c] += from[c] * scale[c];
  });
  // In the order of the rows.
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

}  // namespace

template <class T>
void EncoderRun<T>::gated(Index l, Stream& stream, Stream& memory, MatrixView<const T> m) {
  const auto at = static_cast<std::size_t>(l);
  LayerTape<T>& tape = stream.layers[at];
  const EncoderLayer<T>& own = layer_of(l);
  const Index w = weights_of(l);
  const MatrixView<const T> x = stream.x[at].view();
  const bool same = &stream == &memory;
  const Index e = design_.intermediate_size, s = design_.attention_key_size;
  const auto open = [&](MatrixView<const T> input, Matrix<T>& raw, Matrix<T>& active) {
    raw.resize(input.rows, 2 * e + s);
    own.wide.forward(input, raw.view());
    active.resize(input.rows, 2 * e + s);
    copy_rows<T>(raw.view(), active.view());
    kernel::activation_forward<T>(design_.activation, active.view());
  };
  const bool post = design_.norm_placement == model::NormPlacement::kPost;
  if (!post) {
    tape.normed.resize(x.rows, x.columns);
    norm(Role::kAttentionNorm, w, design_.norm, x, tape.normed.view());
    if (!same) {
      tape.memory_normed.resize(m.rows, m.columns);
      norm(Role::kAttentionNorm, w, design_.norm, m, tape.memory_normed.view());
    }
  }
  open(post ? x : tape.normed.view(), tape.gate, tape.wide);
  if (!same) open(post ? m : tape.memory_normed.view(), tape.memory_gate, tape.memory_projected);
  const MatrixView<T> read = same ? tape.wide.view() : tape.memory_projected.view();
  const auto gamma = value(encoder_.slots_.weight(Role::kGatedGamma, w));
  const auto beta = value(encoder_.slots_.weight(Role::kGatedBeta, w));
  tape.queries.resize(x.rows, s);
  tape.keys.resize(m.rows, s);
  scale_columns<T>(tape.wide.view().middle_columns(2 * e, s), gamma, beta, 0, tape.queries.view());
  scale_columns<T>(read.middle_columns(2 * e, s), gamma, beta, 1, tape.keys.view());
  tape.context.resize(x.rows, e);
  attend(l, stream, memory, {1, 1, s, e}, tape.queries.view(), tape.keys.view(),
         read.middle_columns(e, e), tape.context.view());
  tape.active.resize(x.rows, e);
  kernel::gated_forward<T>(kernel::Activation::kNone, tape.context.view(),
                           tape.wide.view().middle_columns(0, e), tape.active.view());
  const MatrixView<T> out = stream.x[at + 1].view();
  tape.sum.resize(x.rows, x.columns);
  const MatrixView<T> sum = post ? tape.sum.view() : out;
  own.output.forward(tape.active.view(), sum);
  drop(DropoutPlace::kAttention, l, stream, false, sum);
  add_scaled<T>(design_.variants.residual_scale, x, sum);
  if (post) norm(Role::kAttentionNorm, w, design_.norm, sum, out);
}

template <class T>
void EncoderRun<T>::gated_input_backward(Index l, MatrixView<const T> x, MatrixView<const T> normed,
                                         MatrixView<const T> d_raw, MatrixView<T> d_normed,
                                         MatrixView<T> d_x) {
  const Dense<T>& wide = layer_of(l).wide;
  if (design_.norm_placement == model::NormPlacement::kPost)
    return wide.backward(x, d_raw, true, d_x);
  wide.backward(normed, d_raw, false, d_normed);
  norm_backward(Role::kAttentionNorm, weights_of(l), design_.norm, x, d_normed, d_x);
}

template <class T>
void EncoderRun<T>::gated_backward(Index l, Stream& stream, Stream& memory, MatrixView<const T> m,
                                   MatrixView<const T> d_out, MatrixView<T> d_x,
                                   MatrixView<T> d_m) {
  const auto at = static_cast<std::size_t>(l);
  LayerTape<T>& tape = stream.layers[at];
  const EncoderLayer<T>& own = layer_of(l);
  const Index w = weights_of(l);
  const MatrixView<const T> x = stream.x[at].view();
  const bool same = &stream == &memory;
  const Index e = design_.intermediate_size, s = design_.attention_key_size;
  const MatrixView<T> d_sum = zeros(kDSum, x.rows, x.columns);
  const bool post = design_.norm_placement == model::NormPlacement::kPost;
  if (post) {
    norm_backward(Role::kAttentionNorm, w, design_.norm, tape.sum.view(), d_out, d_sum);
  } else {
    copy_rows<T>(d_out, d_sum);
  }
  add_scaled<T>(design_.variants.residual_scale, d_sum, d_x);
  drop(DropoutPlace::kAttention, l, stream, true, d_sum);
  const MatrixView<T> d_gated = scratch(kDGated, x.rows, e);
  own.output.backward(tape.active.view(), d_sum, false, d_gated);
  const MatrixView<T> d_wide = zeros(kDWide, x.rows, 2 * e + s);
  const MatrixView<T> d_memory = same ? d_wide : zeros(kDMemoryWide, m.rows, 2 * e + s);
  const MatrixView<T> d_context = zeros(kDContext, x.rows, e);
  kernel::gated_backward<T>(kernel::Activation::kNone, tape.context.view(),
                            tape.wide.view().middle_columns(0, e), d_gated, d_context,
                            d_wide.middle_columns(0, e));
  const MatrixView<T> read = same ? tape.wide.view() : tape.memory_projected.view();
  const MatrixView<T> d_query = scratch(kDQuery, x.rows, s);
  const MatrixView<T> d_key = scratch(kDKey, m.rows, s);
  attend_backward(l, stream, memory, {1, 1, s, e}, tape.queries.view(), tape.keys.view(),
                  read.middle_columns(e, e), tape.context.view(), d_context, d_query, d_key,
                  d_memory.middle_columns(e, e));
  const auto gamma = value(encoder_.slots_.weight(Role::kGatedGamma, w));
  const auto d_gamma = gradient(encoder_.slots_.weight(Role::kGatedGamma, w));
  const auto d_beta = gradient(encoder_.slots_.weight(Role::kGatedBeta, w));
  scale_columns_backward<T>(tape.wide.view().middle_columns(2 * e, s), gamma, 0, d_query,
                            d_wide.middle_columns(2 * e, s), d_gamma, d_beta);
  scale_columns_backward<T>(read.middle_columns(2 * e, s), gamma, 1, d_key,
                            d_memory.middle_columns(2 * e, s), d_gamma, d_beta);
  const MatrixView<T> d_raw = zeros(kDRaw, x.rows, 2 * e + s);
  kernel::activation_backward<T>(design_.activation, tape.gate.view(), d_wide, d_raw);
  gated_input_backward(l, x, tape.normed.view(), d_raw, scratch(kDNormed, x.rows, x.columns), d_x);
  if (same) return;
  const MatrixView<T> d_memory_raw = zeros(kDMemoryRaw, m.rows, 2 * e + s);
  kernel::activation_backward<T>(design_.activation, tape.memory_gate.view(), d_memory,
                                 d_memory_raw);
  gated_input_backward(l, m, tape.memory_normed.view(), d_memory_raw,
                       scratch(kDMemoryNormed, m.rows, m.columns), d_m);
}

#define MASQUE_INSTANTIATE(T)                                                               \
  template void EncoderRun<T>::gated(Index, Stream&, Stream&, MatrixView<const T>);         \
  template void EncoderRun<T>::gated_backward(Index, Stream&, Stream&, MatrixView<const T>, \
                                              MatrixView<const T>, MatrixView<T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
template void EncoderRun<std::complex<double>>::gated(Index, Stream&, Stream&,
                                                      MatrixView<const std::complex<double>>);
#undef MASQUE_INSTANTIATE

}  // namespace masque::train
