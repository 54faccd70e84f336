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

template <class T>
void Pass<T>::gated_keys_values(Index layer, const Stream<T>& source) {
  const PreparedLayer<T>& weights = model_.layer(layer);
  const Index s = design_.attention_key_size;
  const Index e = (weights.gated_input.outputs() - s) / 2;
  kv_.resize(source.count(), weights.gated_input.outputs());
  weights.gated_input.forward(source.x.view(), kv_.view());
  relative_ = scaled_keys(weights, 1, kv_.view().middle_columns(2 * e, s));
  turn(layer, source.positions, s, relative_.view());
  key_ = relative_.view();
  value_ = kv_.view().middle_columns(e, e);
}

template <class T>
void Pass<T>::gated_advance(Index layer, Stream<T>& stream) {
  const PreparedLayer<T>& weights = model_.layer(layer);
  const MatrixView<T> x = stream.x.view();
  if (x.rows == 0) return;
  const Index s = design_.attention_key_size;
  const Index e = (weights.gated_input.outputs() - s) / 2;
  wide_.resize(x.rows, weights.gated_input.outputs());
  weights.gated_input.forward(x, wide_.view());
  q_ = scaled_keys(weights, 0, wide_.view().middle_columns(2 * e, s));
  turn(layer, stream.positions, s, q_.view());
  context_.resize(x.rows, e);
  attend(layer, stream, {1, 1, s, design_.attention_scale}, q_.view(), context_.view());
  kernel::gated_forward<T>(kernel::Activation::kNone, wide_.view().middle_columns(0, e),
                           context_.view(), context_.view());
  attended_.resize(x.rows, design_.hidden_size);
  weights.output.forward(context_.view(), attended_.view());
  weights.attention_norm.add_and_forward(attended_.view(), x);
}

template void Pass<float>::gated_keys_values(Index, const Stream<float>&);
template void Pass<float>::gated_advance(Index, Stream<float>&);
template void Pass<double>::gated_keys_values(Index, const Stream<double>&);
template void Pass<double>::gated_advance(Index, Stream<double>&);

}  // namespace masque::model
