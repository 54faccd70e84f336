// A transformer layer, forward and backward.
//
//   post-norm   s = α x + attention(x, m);   u = norm(s);  t = α u + ffn(u);  y = norm(t)
//   pre-norm    s = x + attention(norm(x), norm(m));       y = s + ffn(norm(s))
//   parallel    y = x + attention(norm(x), norm(m)) + ffn(norm(x))
#include <complex>

#include "base/error.hpp"
#include "kernel/activation.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

using model::NormPlacement;

namespace {

// Scratch matrices of a layer.
enum : std::size_t {
  kAttended,
  kDSum,
  kDMiddle,
  kDContext,
  kDProjected,
  kDMemory,
  kDNormed,
  kDWide,
  kActive,
  kDConvolved
};

}  // namespace

template <class T>
void EncoderRun<T>::feed_forward(Index l, LayerTape<T>& tape, MatrixView<const T> x,
                                 MatrixView<T> y) {
  const EncoderLayer<T>& own = layer_of(l);
  tape.wide.resize(x.rows, own.wide.outputs());
  own.wide.forward(x, tape.wide.view());
  const Index inner = design_.intermediate_size;
  if (!encoder_.large_) tape.active.resize(x.rows, inner);
  const MatrixView<T> active =
      encoder_.large_ ? scratch(kActive, x.rows, inner) : tape.active.view();
  activate(tape, active);
  own.down.forward(active, y);
}

template <class T>
void EncoderRun<T>::activate(const LayerTape<T>& tape, MatrixView<T> active) const {
  const Index inner = design_.intermediate_size;
  if (design_.gated) {
    kernel::gated_forward<T>(design_.activation, tape.wide.view().middle_columns(0, inner),
                             tape.wide.view().middle_columns(inner, inner), active);
  } else {
    copy_rows<T>(tape.wide.view(), active);
    kernel::activation_forward<T>(design_.activation, active);
  }
}

template <class T>
void EncoderRun<T>::feed_forward_backward(Index l, LayerTape<T>& tape, MatrixView<const T> x,
                                          MatrixView<const T> d_y, MatrixView<T> d_x) {
  const EncoderLayer<T>& own = layer_of(l);
  const Index inner = design_.intermediate_size;
  const MatrixView<T> d_wide = zeros(kDWide, x.rows, tape.wide.columns());
  // The gradient of the product takes the place of the product.
  const MatrixView<T> d_active = scratch(kDContext, x.rows, inner);
  MatrixView<const T> active = tape.active.view();
  if (encoder_.large_) {
    const MatrixView<T> again = scratch(kActive, x.rows, inner);
    activate(tape, again);
    active = again;
  }
  own.down.backward(active, d_y, false, d_active);
  if (design_.gated) {
    kernel::gated_backward<T>(design_.activation, tape.wide.view().middle_columns(0, inner),
                              tape.wide.view().middle_columns(inner, inner), d_active,
                              d_wide.middle_columns(0, inner), d_wide.middle_columns(inner, inner));
  } else {
    kernel::activation_backward<T>(design_.activation, tape.wide.view(), d_active, d_wide);
  }
  own.wide.backward(x, d_wide, true, d_x);
}

template <class T>
void EncoderRun<T>::layer(Index l, Stream& stream, Stream& memory, MatrixView<const T> m) {
  const auto at = static_cast<std::size_t>(l);
  const MatrixView<const T> x = stream.x[at].view();
  stream.x[at + 1].resize(x.rows, design_.hidden_size);
  if (design_.layer_kind == model::LayerKind::kGatedAttention) return gated(l, stream, memory, m);
  LayerTape<T>& tape = stream.layers[at];
  const EncoderLayer<T>& own = layer_of(l);
  const Index w = weights_of(l);
  const bool same = &stream == &memory;
  const bool post = design_.norm_placement == NormPlacement::kPost;
  MatrixView<const T> query_input = x, memory_input = m;
  if (!post && design_.layers[at].input_norm) {
    tape.normed.resize(x.rows, x.columns);
    norm(Role::kAttentionNorm, w, design_.norm, x, tape.normed.view());
    query_input = tape.normed.view();
    if (!same) {
      tape.memory_normed.resize(m.rows, m.columns);
      norm(Role::kAttentionNorm, w, design_.norm, m, tape.memory_normed.view());
    }
    memory_input = same ? tape.normed.view() : tape.memory_normed.view();
  }
  const Index heads = design_.num_attention_heads;
  const Heads sizes{heads, design_.num_key_value_heads, design_.head_size,
                    model::head_value_size(design_)};
  if (encoder_.mixer_ != nullptr) {
    tape.context.resize(x.rows, design_.hidden_size);
    mix(l, stream, query_input, tape.context.view());
  } else {
    const Index query_width = heads * sizes.head_size;
    const Index key_width = sizes.key_heads * sizes.head_size;
    const Index value_width = sizes.key_heads * sizes.value_size;
    MatrixView<T> query, both;
    if (same) {
      tape.projected.resize(x.rows, query_width + key_width + value_width);
      own.all.forward(query_input, tape.projected.view());
      query = tape.projected.view().middle_columns(0, query_width);
      both = tape.projected.view().middle_columns(query_width, key_width + value_width);
    } else {
      tape.projected.resize(x.rows, query_width);
      own.query.forward(query_input, tape.projected.view());
      tape.memory_projected.resize(m.rows, key_width + value_width);
      own.key_value.forward(memory_input, tape.memory_projected.view());
      query = tape.projected.view();
      both = tape.memory_projected.view();
    }
    tape.context.resize(x.rows, heads * sizes.value_size);
    attend(l, stream, memory, sizes, query, both.middle_columns(0, key_width),
           both.middle_columns(key_width, value_width), tape.context.view());
  }
  tape.sum.resize(x.rows, x.columns);
  const MatrixView<T> sum = tape.sum.view();
  own.output.forward(tape.context.view(), sum);
  drop(DropoutPlace::kAttention, l, stream, false, sum);
  add_scaled<T>(design_.variants.residual_scale, x, sum);
  tape.middle.resize(x.rows, x.columns);
  const MatrixView<T> middle = tape.middle.view();
  const bool parallel = design_.norm_placement == NormPlacement::kParallel;
  if (post) {
    norm(Role::kAttentionNorm, w, design_.norm, sum, middle);
  } else {
    norm(Role::kFeedForwardNorm, w, design_.norm, parallel ? x : sum, middle);
  }
  const MatrixView<T> out = stream.x[at + 1].view();
  tape.last_sum.resize(x.rows, x.columns);
  const MatrixView<T> last = post ? tape.last_sum.view() : out;
  feed_forward(l, tape, middle, last);
  drop(DropoutPlace::kFeedForward, l, stream, false, last);
  if (post) {
    add_scaled<T>(design_.variants.residual_scale, middle, last);
    norm(Role::kFeedForwardNorm, w, design_.norm, last, out);
    if (!own.convolution.empty()) convolve(l, stream, x, out);
  } else {
    kernel::add_to<T>(sum, last);
  }
}

template <class T>
void EncoderRun<T>::layer_backward(Index l, Stream& stream, Stream& memory, MatrixView<const T> m,
                                   MatrixView<const T> d_out, MatrixView<T> d_x,
                                   MatrixView<T> d_m) {
  if (design_.layer_kind == model::LayerKind::kGatedAttention)
    return gated_backward(l, stream, memory, m, d_out, d_x, d_m);
  const auto at = static_cast<std::size_t>(l);
  LayerTape<T>& tape = stream.layers[at];
  const EncoderLayer<T>& own = layer_of(l);
  const Index w = weights_of(l);
  const MatrixView<const T> x = stream.x[at].view();
  const bool same = &stream == &memory;
  const bool post = design_.norm_placement == NormPlacement::kPost;
  const bool parallel = design_.norm_placement == NormPlacement::kParallel;
  const double alpha = design_.variants.residual_scale;
  // After the feed-forward layer.
  const MatrixView<T> d_sum = zeros(kDSum, x.rows, x.columns);
  const MatrixView<T> d_middle = zeros(kDMiddle, x.rows, x.columns);
  const MatrixView<T> d_last = zeros(kAttended, x.rows, x.columns);
  if (post) {
    MatrixView<const T> d_end = d_out;
    if (!own.convolution.empty()) {
      const MatrixView<T> d_convolved = scratch(kDConvolved, x.rows, x.columns);
      convolve_backward(l, stream, x, d_out, d_convolved, d_x);
      d_end = d_convolved;
    }
    norm_backward(Role::kFeedForwardNorm, w, design_.norm, tape.last_sum.view(), d_end, d_last);
    add_scaled<T>(alpha, d_last, d_middle);
  } else {
    kernel::add_to<T>(d_out, d_last);
    kernel::add_to<T>(d_out, d_sum);
  }
  drop(DropoutPlace::kFeedForward, l, stream, true, d_last);
  feed_forward_backward(l, tape, tape.middle.view(), d_last, d_middle);
  if (post) {
    norm_backward(Role::kAttentionNorm, w, design_.norm, tape.sum.view(), d_middle, d_sum);
  } else {
    norm_backward(Role::kFeedForwardNorm, w, design_.norm, parallel ? x : tape.sum.view(), d_middle,
                  parallel ? d_x : d_sum);
  }
  // Attention.
  add_scaled<T>(alpha, d_sum, d_x);
  drop(DropoutPlace::kAttention, l, stream, true, d_sum);
  const MatrixView<T> d_context = scratch(kDContext, x.rows, tape.context.columns());
  own.output.backward(tape.context.view(), d_sum, false, d_context);
  const bool normed = !post && design_.layers[at].input_norm;
  const MatrixView<const T> input = normed ? tape.normed.view() : x;
  const MatrixView<T> d_input = normed ? zeros(kDNormed, x.rows, x.columns) : d_x;
  if (encoder_.mixer_ != nullptr) {
    mix_backward(l, stream, input, d_context, d_input);
  } else {
    const Index heads = design_.num_attention_heads;
    const Heads sizes{heads, design_.num_key_value_heads, design_.head_size,
                      model::head_value_size(design_)};
    const Index query_width = heads * sizes.head_size;
    const Index key_width = sizes.key_heads * sizes.head_size;
    const Index value_width = sizes.key_heads * sizes.value_size;
    const MatrixView<T> d_projected = scratch(kDProjected, x.rows, tape.projected.columns());
    MatrixView<T> both, d_both;
    if (same) {
      both = tape.projected.view().middle_columns(query_width, key_width + value_width);
      d_both = d_projected.middle_columns(query_width, key_width + value_width);
    } else {
      both = tape.memory_projected.view();
      d_both = scratch(kDMemory, m.rows, key_width + value_width);
    }
    attend_backward(l, stream, memory, sizes, tape.projected.view().middle_columns(0, query_width),
                    both.middle_columns(0, key_width), both.middle_columns(key_width, value_width),
                    tape.context.view(), d_context, d_projected.middle_columns(0, query_width),
                    d_both.middle_columns(0, key_width),
                    d_both.middle_columns(key_width, value_width));
    if (same) {
      own.all.backward(input, d_projected, true, d_input);
    } else {
      own.query.backward(input, d_projected, true, d_input);
      if (normed) {
        const MatrixView<T> d_memory = zeros(kDMiddle, m.rows, m.columns);
        own.key_value.backward(tape.memory_normed.view(), d_both, true, d_memory);
        norm_backward(Role::kAttentionNorm, w, design_.norm, m, d_memory, d_m);
      } else {
        own.key_value.backward(m, d_both, true, d_m);
      }
    }
  }
  if (normed) norm_backward(Role::kAttentionNorm, w, design_.norm, x, d_input, d_x);
}

#define MASQUE_INSTANTIATE(T)                                                               \
  template void EncoderRun<T>::layer(Index, Stream&, Stream&, MatrixView<const T>);         \
  template void EncoderRun<T>::layer_backward(Index, Stream&, Stream&, MatrixView<const T>, \
                                              MatrixView<const T>, MatrixView<T>, MatrixView<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
template void EncoderRun<std::complex<double>>::layer(Index, Stream&, Stream&,
                                                      MatrixView<const std::complex<double>>);
#undef MASQUE_INSTANTIATE

}  // namespace masque::train
