// A transformer layer: attention and feed-forward around their residuals and norms.
#include <algorithm>

#include "kernel/activation.hpp"
#include "kernel/parallel.hpp"
#include "kernel/rotary.hpp"
#include "model/convolution_windows.hpp"
#include "model/pass.hpp"

namespace masque::model {
namespace {

// Rows that go through both products of a feed-forward layer before the next: what lies between
// them stays in the cache of one thread.
constexpr Index kPanelRows = 128;
constexpr Index kSharedPanelRows = 512;

}  // namespace

template <class T>
const kernel::RotaryTable<T>& Pass<T>::rotary_table(const RotaryDesign& rotary,
                                                    const Stream<T>& stream) {
  for (const Rotated& known : rotated_) {
    if (known.kind == stream.kind && known.rotary->frequencies == rotary.frequencies &&
        known.rotary->factor == rotary.factor) {
      return *known.table;
    }
  }
  rotated_.push_back(
      {stream.kind, &rotary,
       std::make_unique<kernel::RotaryTable<T>>(kernel::rotary_table<T>(
           rotary.frequencies, stream.positions, rotary.factor, rotary.float_angles))});
  return *rotated_.back().table;
}

template <class T>
void Pass<T>::apply_rotary(Index layer, const Stream<T>& stream, Index head_size, MatrixView<T> x) {
  const RotaryDesign& rotary = design_.layers[static_cast<std::size_t>(layer)].rotary;
  kernel::rotary_forward<T>(rotary.layout, rotary_table(rotary, stream), head_size, x);
}

template <class T>
void Pass<T>::project(const kernel::Linear<T>& linear, Index layer, const Stream<T>& stream,
                      MatrixView<const T> x, MatrixView<T> y) const {
  if (layer == 0 && &stream == &content_ && repeats_.pay()) {
    repeats_.forward(linear, x, y);
  } else {
    linear.forward(x, y);
  }
}

template <class T>
void Pass<T>::project_keys_values(Index layer, const Stream<T>& source) {
  if (design_.layer_kind == LayerKind::kGatedAttention)
    return gated_project_keys_values(layer, source);
  if (model_.mixer != nullptr) return;
  const PreparedLayer<T>& weights = model_.layer(layer);
  const LayerDesign& own = design_.layers[static_cast<std::size_t>(layer)];
  MatrixView<const T> x = source.x.view();
  if (design_.norm_placement != NormPlacement::kPost && own.input_norm) {
    scratch_.normed.resize(x.rows, x.columns);
    weights.attention_norm.forward(x, scratch_.normed.view());
    x = scratch_.normed.view();
  }
  scratch_.key_value.resize(x.rows, weights.key_value.outputs());
  project(weights.key_value, layer, source, x, scratch_.key_value.view());
  const Index key_width = design_.num_key_value_heads * design_.head_size;
  const MatrixView<T> key = scratch_.key_value.view().middle_columns(0, key_width);
  const MatrixView<T> value =
      scratch_.key_value.view().middle_columns(key_width, scratch_.key_value.columns() - key_width);
  if (design_.position == PositionType::kRotary) {
    apply_rotary(layer, source, design_.head_size, key);
    if (own.rotary.values) apply_rotary(layer, source, design_.head_size, value);
  }
  key_ = key;
  value_ = value;
  if (design_.position == PositionType::kXlnet) project_relative(weights);
}

template <class T>
void Pass<T>::attention_block(Index layer, const Stream<T>& stream, MatrixView<const T> x) {
  if (override_of(layer) == AttentionOverride::kZero) {
    scratch_.attended = Matrix<T>::zero(x.rows, design_.hidden_size);
    return;
  }
  const PreparedLayer<T>& weights = model_.layer(layer);
  scratch_.attended.resize(x.rows, design_.hidden_size);
  if (model_.mixer != nullptr) {
    mix(layer, stream, x);
    weights.output.forward(scratch_.context.view(), scratch_.attended.view());
    return;
  }
  scratch_.query.resize(x.rows, weights.query.outputs());
  project(weights.query, layer, stream, x, scratch_.query.view());
  if (design_.position == PositionType::kRotary) {
    apply_rotary(layer, stream, design_.head_size, scratch_.query.view());
  }
  const Index value_size = value_.columns / design_.num_key_value_heads;
  scratch_.context.resize(x.rows, design_.num_attention_heads * value_size);
  attend(
      layer, stream,
      {design_.num_attention_heads, design_.num_key_value_heads, design_.head_size,
       design_.attention_scale * design_.layers[static_cast<std::size_t>(layer)].attention_scale},
      scratch_.query.view(), scratch_.context.view());
  weights.output.forward(scratch_.context.view(), scratch_.attended.view());
}

template <class T>
void Pass<T>::feed_forward(const PreparedLayer<T>& weights, MatrixView<const T> x,
                           MatrixView<T> y) {
  const Index panel = kernel::threads() > 1 ? kSharedPanelRows : kPanelRows;
  const Index wide = weights.up.outputs();
  scratch_.wide.resize(std::min(panel, x.rows), wide);
  for (Index first = 0; first < x.rows; first += panel) {
    const Index count = std::min(panel, x.rows - first);
    const MatrixView<T> between = scratch_.wide.view().middle_rows(0, count);
    weights.up.forward(x.middle_rows(first, count), between);
    MatrixView<T> active = between;
    if (design_.gated) {
      active = between.middle_columns(0, wide / 2);
      kernel::gated_forward<T>(design_.activation, active,
                               between.middle_columns(wide / 2, wide / 2), active);
    }
    weights.down.forward(active, y.middle_rows(first, count));
  }
}

template <class T>
void Pass<T>::layer_forward(Index layer, Stream<T>& stream) {
  if (design_.layer_kind == LayerKind::kGatedAttention) return gated_layer_forward(layer, stream);
  const PreparedLayer<T>& weights = model_.layer(layer);
  const MatrixView<T> x = stream.x.view();
  if (x.rows == 0) return;
  if (design_.norm_placement == NormPlacement::kPost) {
    const bool convolved = !weights.convolution.empty();
    const Matrix<T> before = convolved ? Matrix<T>::copy(x) : Matrix<T>();
    attention_block(layer, stream, x);
    scale_residual(x);
    weights.attention_norm.add_and_forward(scratch_.attended.view(), x);
    feed_forward(weights, x, scratch_.attended.view());
    scale_residual(x);
    weights.feed_forward_norm.add_and_forward(scratch_.attended.view(), x);
    if (convolved) convolve(weights, before.view(), stream);
    return;
  }
  MatrixView<const T> input = x;
  scratch_.normed.resize(x.rows, x.columns);
  if (design_.layers[static_cast<std::size_t>(layer)].input_norm) {
    weights.attention_norm.forward(x, scratch_.normed.view());
    input = scratch_.normed.view();
  }
  attention_block(layer, stream, input);
  if (design_.norm_placement == NormPlacement::kPre) {
    kernel::add_to<T>(scratch_.attended.view(), x);
    weights.feed_forward_norm.forward(x, scratch_.normed.view());
  } else {
    weights.feed_forward_norm.forward(x, scratch_.normed.view());
    kernel::add_to<T>(scratch_.attended.view(), x);
  }
  feed_forward(weights, scratch_.normed.view(), scratch_.attended.view());
  kernel::add_to<T>(scratch_.attended.view(), x);
}

// DeBERTa: x ← norm(x + act(convolution of the layer's input)), zeros beyond the sequence.
template <class T>
void Pass<T>::convolve(const PreparedLayer<T>& weights, MatrixView<const T> before,
                       Stream<T>& after) {
  Matrix<T> windows(before.rows, before.columns * design_.convolution_size);
  convolution_windows<T>(before, chunk_.begins, design_.convolution_size, windows.view());
  scratch_.attended.resize(before.rows, before.columns);
  weights.convolution.forward(windows.view(), scratch_.attended.view());
  kernel::activation_forward<T>(design_.convolution_activation, scratch_.attended.view());
  weights.convolution_norm.add_and_forward(scratch_.attended.view(), after.x.view());
}

template void Pass<float>::apply_rotary(Index, const Stream<float>&, Index, MatrixView<float>);
template void Pass<float>::project_keys_values(Index, const Stream<float>&);
template void Pass<float>::layer_forward(Index, Stream<float>&);
template void Pass<float>::convolve(const PreparedLayer<float>&, MatrixView<const float>,
                                    Stream<float>&);
template void Pass<double>::apply_rotary(Index, const Stream<double>&, Index, MatrixView<double>);
template void Pass<double>::project_keys_values(Index, const Stream<double>&);
template void Pass<double>::layer_forward(Index, Stream<double>&);
template void Pass<double>::convolve(const PreparedLayer<double>&, MatrixView<const double>,
                                     Stream<double>&);

}  // namespace masque::model
