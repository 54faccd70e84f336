// Gated attention units: one layer that is attention and feed-forward. Hua et al. 2022,
// arXiv:2202.10447; GAU-α's form, https://kexue.fm/archives/9052.
//
//   [U, V, Z] = act(x W_i)     Q = γ_q ⊙ Z + β_q     K = γ_k ⊙ Z + β_k     y = (U ⊙ A V) W_o
#include "kernel/activation.hpp"
#include "model/pass.hpp"

namespace masque::model {

template <class T>
Matrix<T> Pass<T>::scaled_keys(const PreparedLayer<T>& weights, Index which,
                               MatrixView<const T> z) const {
  Matrix<T> result(z.rows, z.columns);
  const T* gamma = weights.gated_gamma.view.row(which);
  const T* beta = weights.gated_beta ? weights.gated_beta.view.row(which) : nullptr;
  for (Index i = 0; i < z.rows; ++i) {
    for (Index c = 0; c < z.columns; ++c) {
      result.view().at(i, c) = z.at(i, c) * gamma[c] + (beta != nullptr ? beta[c] : T{0});
    }
  }
  return result;
}

// What the layer reads: x, of pre-norm designs its norm.
template <class T>
MatrixView<const T> Pass<T>::gated_normed(const PreparedLayer<T>& weights, MatrixView<const T> x) {
  if (design_.norm_placement == NormPlacement::kPost) return x;
  scratch_.normed.resize(x.rows, x.columns);
  weights.attention_norm.forward(x, scratch_.normed.view());
  return scratch_.normed.view();
}

template <class T>
void Pass<T>::gated_add(const PreparedLayer<T>& weights, MatrixView<T> x) const {
  if (design_.norm_placement != NormPlacement::kPost) {
    return kernel::add_to<T>(scratch_.attended.view(), x);
  }
  scale_residual(x);
  weights.attention_norm.add_and_forward(scratch_.attended.view(), x);
}

template <class T>
void Pass<T>::gated_project_keys_values(Index layer, const Stream<T>& source) {
  const PreparedLayer<T>& weights = model_.layer(layer);
  const Index s = design_.attention_key_size;
  const Index e = (weights.gated_input.outputs() - s) / 2;
  scratch_.key_value.resize(source.count(), weights.gated_input.outputs());
  weights.gated_input.forward(gated_normed(weights, source.x.view()), scratch_.key_value.view());
  scratch_.relative = scaled_keys(weights, 1, scratch_.key_value.view().middle_columns(2 * e, s));
  if (design_.position == PositionType::kRotary) {
    apply_rotary(layer, source, s, scratch_.relative.view());
  }
  key_ = scratch_.relative.view();
  value_ = scratch_.key_value.view().middle_columns(e, e);
}

template <class T>
void Pass<T>::gated_layer_forward(Index layer, Stream<T>& stream) {
  const PreparedLayer<T>& weights = model_.layer(layer);
  const MatrixView<T> x = stream.x.view();
  if (x.rows == 0) return;
  if (override_of(layer) == AttentionOverride::kZero) {
    scratch_.attended = Matrix<T>::zero(x.rows, design_.hidden_size);
    return gated_add(weights, x);
  }
  const Index s = design_.attention_key_size;
  const Index e = (weights.gated_input.outputs() - s) / 2;
  scratch_.wide.resize(x.rows, weights.gated_input.outputs());
  weights.gated_input.forward(gated_normed(weights, x), scratch_.wide.view());
  scratch_.query = scaled_keys(weights, 0, scratch_.wide.view().middle_columns(2 * e, s));
  if (design_.position == PositionType::kRotary)
    apply_rotary(layer, stream, s, scratch_.query.view());
  scratch_.context.resize(x.rows, e);
  attend(layer, stream, {1, 1, s, design_.attention_scale}, scratch_.query.view(),
         scratch_.context.view());
  kernel::gated_forward<T>(kernel::Activation::kNone, scratch_.context.view(),
                           scratch_.wide.view().middle_columns(0, e), scratch_.context.view());
  scratch_.attended.resize(x.rows, design_.hidden_size);
  weights.output.forward(scratch_.context.view(), scratch_.attended.view());
  gated_add(weights, x);
}

template void Pass<float>::gated_project_keys_values(Index, const Stream<float>&);
template void Pass<float>::gated_layer_forward(Index, Stream<float>&);
template void Pass<double>::gated_project_keys_values(Index, const Stream<double>&);
template void Pass<double>::gated_layer_forward(Index, Stream<double>&);

}  // namespace masque::model
