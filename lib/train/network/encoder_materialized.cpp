// Attention whose weights exist at once: talking heads, scores of the layer before, and their
// diversity; forward and backward.
#include <complex>

#include <fmt/format.h>

#include "base/error.hpp"
#include "kernel/dropout.hpp"
#include "kernel/parallel.hpp"
#include "model/variants.hpp"
#include "train/network/encoder_run.hpp"

namespace masque::train {

using model::PreviousScores;

template <class T>
void Encoder<T>::measure_diversity() {
  if (mixer_ != nullptr)
    throw UsageError(fmt::format("{} has no attention, so its diversity cannot be measured",
                                 design_.variants.mixer));
  materialized_ = measures_ = true;
}

template <class T>
Index Encoder<T>::attention_matrices() const {
  const bool two = design_.streams == model::Streams::kTwo;
  const Index layers = design_.num_hidden_layers;
  // The content after the last layer is not computed.
  return model::softmax_heads(design_) * (two ? 2 * layers - 1 : layers);
}

template <class T>
template <class Work>
void EncoderRun<T>::for_score_rows(std::string_view purpose, Index l, const Stream& stream,
                                   const Sequence& one, Index head, MatrixView<T> scores,
                                   const Work& work) const {
  // Numbers of a row: no sequence has more keys.
  constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 20;
  const bool query = &stream == &tape_.selected;
  const RandomStream random(dropout_.seed, fmt::format("{} {} {}", purpose, l, query ? 1 : 0),
                            dropout_.step);
  for (Index i = 0; i < scores.rows; ++i) {
    Index row = one.begin + i;
    if (stream.kind != model::StreamKind::kContent)
      row = stream.rows[static_cast<std::size_t>(row)];
    const auto of_head =
        static_cast<std::uint64_t>((dropout_.first_row + row) * design_.num_attention_heads + head);
    work(random, of_head * kMostKeys, scores.middle_rows(i, 1));
  }
}

template <class T>
void EncoderRun<T>::drop_scores_backward(Index l, const Stream& stream, const Sequence& one,
                                         std::span<Matrix<T>> d_scores) const {
  if (dropout_.score_dropout == 0) return;
  for (std::size_t h = 0; h < d_scores.size(); ++h) {
    for_score_rows("score dropout", l, stream, one, static_cast<Index>(h), d_scores[h].view(),
                   [&](const RandomStream& random, std::uint64_t first, MatrixView<T> row) {
                     kernel::dropout_backward<T>(dropout_.score_dropout, random, first, row);
                   });
  }
}

template <class T>
nn::MaterializedAttention<T> EncoderRun<T>::materialized(Index l, const Stream& stream,
                                                         std::size_t sequence, const Sequence& one,
                                                         std::vector<MatrixView<const T>>& previous,
                                                         std::vector<Matrix<T>>& perturbed) const {
  const Index w = weights_of(l);
  if (design_.variants.previous_scores != PreviousScores::kNone && l > 0) {
    const LayerTape<T>& before = stream.layers[static_cast<std::size_t>(l) - 1];
    const std::vector<Matrix<T>>& all = before.materialized[sequence].scores;
    perturbed.reserve(all.size());  // views of them stay
    for (const Matrix<T>& scores : all) {
      if (!perturbs_scores()) {
        previous.push_back(scores.view());
        continue;
      }
      const Index head = std::ssize(perturbed);
      Matrix<T>& own = perturbed.emplace_back(Matrix<T>::copy(scores.view()));
      if (dropout_.score_noise > 0) {
        std::vector<double> noise(static_cast<std::size_t>(own.columns()));
        for_score_rows("score noise", l, stream, one, head, own.view(),
                       [&](const RandomStream& random, std::uint64_t first, MatrixView<T> row) {
                         random.normal(first, noise.size(), noise.data());
                         for (Index j = 0; j < row.columns; ++j) {
                           row.at(0, j) += static_cast<T>(dropout_.score_noise *
                                                          noise[static_cast<std::size_t>(j)]);
                         }
                       });
      }
      if (dropout_.score_dropout > 0) {
        for_score_rows("score dropout", l, stream, one, head, own.view(),
                       [&](const RandomStream& random, std::uint64_t first, MatrixView<T> row) {
                         kernel::dropout_forward<T>(dropout_.score_dropout, random, first, row);
                       });
      }
      previous.push_back(std::as_const(own).view());
    }
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
    std::vector<Matrix<T>> perturbed;
    const nn::MaterializedAttention<T> attention =
        materialized(l, stream, s, one, previous, perturbed);
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
    std::vector<Matrix<T>> perturbed;
    const nn::MaterializedAttention<T> attention =
        materialized(l, stream, s, one, previous, perturbed);
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
    drop_scores_backward(l, stream, one, d_scores[s]);
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
