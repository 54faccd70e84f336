// Attention whose weights exist at once: talking heads, scores of the layer before, and their
// diversity; forward and backward.
#include <complex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "model/variants.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

using model::PreviousScores;

template <class T>
void Encoder<T>::measure_diversity() {
  if (mixer_ != nullptr)
    throw UsageError(fmt::format("{} has no attention, whose diversity could be measured",
                                 design_.variants.mixer));
  materialized_ = measures_ = true;
}

template <class T>
Index Encoder<T>::attention_matrices() const {
  const bool two = design_.streams == model::Streams::kTwo;
  const Index layers = design_.num_hidden_layers;
  // The content after the last layer is not computed.
  return design_.num_attention_heads * (two ? 2 * layers - 1 : layers);
}

template <class T>
nn::MaterializedAttention<T> EncoderRun<T>::materialized(
    Index l, const Stream& stream, std::size_t sequence, const Sequence& one,
    std::vector<MatrixView<const T>>& previous) const {
  const Index w = weights_of(l);
  if (design_.variants.previous_scores != PreviousScores::kNone && l > 0) {
    const LayerTape<T>& before = stream.layers[static_cast<std::size_t>(l) - 1];
    for (const Matrix<T>& scores : before.materialized[sequence].scores)
      previous.push_back(scores.view());
  }
  return model::materialized_attention<T>(
      design_, one.attention.problem, value(encoder_.map_.weight(Role::kTalkingBefore, w)),
      value(encoder_.map_.weight(Role::kTalkingAfter, w)), previous, one.terms.own.get());
}

template <class T>
void EncoderRun<T>::measure(std::span<const Sequence> all, const LayerTape<T>& tape) {
  std::vector<std::array<Wide<T>, kDiversities>> found(all.size());
  kernel::parallel_items(std::ssize(all), [&](Index item) {
    const auto s = static_cast<std::size_t>(item);
    if (all[s].count == 0 || !chunk_.has_loss(item)) return;
    for (const Matrix<T>& weights : tape.materialized[s].normalized) {
      const auto one = measure_diversity<T>(weights.view(), {}, {});
      for (std::size_t k = 0; k < kDiversities; ++k) found[s][k] += one[k];
    }
  });
  for (const auto& one : found) {
    for (std::size_t k = 0; k < kDiversities; ++k) tape_.diversity[k] += one[k];
  }
}

template <class T>
void EncoderRun<T>::materialized_forward(Index l, Stream& stream, std::span<Sequence> all,
                                         MatrixView<T> context) {
  LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
  tape.materialized.resize(all.size());
  kernel::parallel_items(std::ssize(all), [&](Index item) {
    const auto s = static_cast<std::size_t>(item);
    const Sequence& one = all[s];
    if (one.count == 0) return;
    std::vector<MatrixView<const T>> previous;
    const nn::MaterializedAttention<T> attention = materialized(l, stream, s, one, previous);
    nn::materialized_attention_forward<T>(attention, context.middle_rows(one.begin, one.count),
                                          &tape.materialized[s]);
  });
  if (encoder_.measures_) measure(all, tape);
}

template <class T>
void EncoderRun<T>::materialized_backward(Index l, Stream& stream, std::span<Sequence> all,
                                          MatrixView<const T> d_context,
                                          const model::Projected<T>& d_projected) {
  LayerTape<T>& tape = stream.layers[static_cast<std::size_t>(l)];
  const Index w = weights_of(l);
  const bool hands_on = design_.variants.previous_scores != PreviousScores::kNone;
  std::vector<std::vector<Matrix<T>>>& d_scores = d_scores_[&stream == &tape_.selected ? 1 : 0];
  const std::vector<std::vector<Matrix<T>>> d_next = std::move(d_scores);
  d_scores.clear();
  d_scores.resize(all.size());
  // One after the other: they share the gradients of parameters.
  for (std::size_t s = 0; s < all.size(); ++s) {
    const Sequence& one = all[s];
    if (one.count == 0) continue;
    std::vector<MatrixView<const T>> previous;
    const nn::MaterializedAttention<T> attention = materialized(l, stream, s, one, previous);
    std::vector<MatrixView<T>> d_previous;
    std::vector<MatrixView<const T>> d_own;
    if (hands_on && l > 0) {
      for (const MatrixView<const T>& scores : previous) {
        d_scores[s].push_back(Matrix<T>::zero(scores.rows, scores.columns));
        d_previous.push_back(d_scores[s].back().view());
      }
    }
    if (s < d_next.size()) {
      for (const Matrix<T>& d : d_next[s]) d_own.push_back(d.view());
    }
    std::vector<Matrix<T>> d_normalized;
    std::vector<MatrixView<const T>> d_diversity;
    if (encoder_.measures_ && chunk_.has_loss(static_cast<Index>(s))) {
      for (const Matrix<T>& weights : tape.materialized[s].normalized) {
        d_normalized.push_back(Matrix<T>::zero(weights.rows(), weights.columns()));
        measure_diversity<T>(weights.view(), tape_.diversity_slopes, d_normalized.back().view());
      }
      for (const Matrix<T>& d : d_normalized) d_diversity.push_back(d.view());
    }
    nn::MaterializedGradients<T> gradients;
    gradients.normalized = d_diversity;
    gradients.query = d_projected.query.middle_rows(one.begin, one.count);
    gradients.key = d_projected.key.middle_rows(one.source_begin, one.keys);
    gradients.value = d_projected.value.middle_rows(one.source_begin, one.keys);
    gradients.talking_before = gradient(encoder_.map_.weight(Role::kTalkingBefore, w));
    gradients.talking_after = gradient(encoder_.map_.weight(Role::kTalkingAfter, w));
    gradients.previous = d_previous;
    gradients.scores = d_own;
    if (one.terms.own != nullptr) {
      gradients.bias = one.terms->bias_gradient();
      gradients.weight_terms = one.terms->weight_terms();
      gradients.value_terms = one.terms->value_terms();
    }
    nn::materialized_attention_backward<T>(attention, tape.materialized[s],
                                           d_context.middle_rows(one.begin, one.count), gradients);
  }
}

#define MASQUE_INSTANTIATE(T)                                                            \
  template void Encoder<T>::measure_diversity();                                         \
  template Index Encoder<T>::attention_matrices() const;                                 \
  template void EncoderRun<T>::materialized_forward(Index, Stream&, std::span<Sequence>, \
                                                    MatrixView<T>);
#define MASQUE_INSTANTIATE_BACKWARD(T)                \
  template void EncoderRun<T>::materialized_backward( \
      Index, Stream&, std::span<Sequence>, MatrixView<const T>, const model::Projected<T>&);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
