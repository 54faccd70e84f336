// EncoderRun: what stands in front of the layers and between them: embeddings, latent bottlenecks,
// the detector; how deep the backward pass goes.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "kernel/embedding.hpp"
#include "model/forward/embedding_sum.hpp"
#include "train/network/encoder.hpp"
#include "train/network/encoder_run.hpp"
#include "train/network/network_part.hpp"

namespace masque::train {

// The backward pass to the tables, and what only a pass that trains does to the input.

template <class T>
model::EmbeddingTables<T> EncoderRun<T>::tables() const {
  const ParameterMap& map = encoder_.map_;
  return {value(map.weight(Role::kWordTable)), value(map.weight(Role::kSegmentTable)),
          value(map.weight(Role::kPositionTable))};
}

template <class T>
void EncoderRun<T>::replace_words(const Stream& stream, MatrixView<T> x) const {
  if (&stream != &tape_.content) return;
  for (std::size_t k = 0; k < chunk_.given.size(); ++k) {
    const T* from = std::as_const(tape_.given).view().row(static_cast<Index>(k));
    std::copy_n(from, x.columns, x.row(chunk_.given[k]));
  }
}

template <class T>
bool EncoderRun<T>::acts_on_input() const {
  return encoder_.scheme_ != nullptr && encoder_.scheme_->facts().input;
}

template <class T>
void EncoderRun<T>::embed_backward(Stream& stream, MatrixView<T> d_x) {
  const ParameterMap& map = encoder_.map_;
  const Index n = stream.count();
  const Index width = design_.embedding_size;
  Matrix<T> d_normed = Matrix<T>::zero(n, width);
  if (!encoder_.projection_.empty()) {
    encoder_.projection_.backward(stream.normed.view(), d_x, false, d_normed.view());
  } else {
    kernel::add_to<T>(d_x, d_normed.view());
  }
  drop_backward(DropoutPlace::kEmbedding, 0, stream, d_normed.view());
  Matrix<T> d_embedded = Matrix<T>::zero(n, width);
  if (design_.embedding_norm) {
    encoder_.embedding_norm_.backward(stream.embedded.view(), d_normed.view(), d_embedded.view());
  } else {
    std::swap(d_embedded, d_normed);
  }
  if (acts_on_input()) {
    // The tables' sum, which the scheme changed in place.
    Matrix<T> sum(n, width);
    model::embed_words<T>(design_, tables(), stream, stream.ids, sum.view());
    replace_words(stream, sum.view());
    model::add_segments_and_positions<T>(design_, tables(), stream, sum.view());
    for (Index s = 0; s < stream.sequences(); ++s) {
      if (stream.count(s) == 0) continue;
      terms(0, stream, stream, s, true)
          ->input_backward(sum.view().middle_rows(stream.begin(s), stream.count(s)),
                           d_embedded.view().middle_rows(stream.begin(s), stream.count(s)));
    }
  }
  if (const Index table = map.weight(Role::kPositionTable); table != ParameterMap::kNone) {
    kernel::embedding_backward<T, Index>(
        model::table_positions(design_, stream),
        design_.positions_after_projection ? d_x : d_embedded.view(), gradient(table));
  }
  if (const Index table = map.weight(Role::kSegmentTable); table != ParameterMap::kNone) {
    kernel::embedding_backward<T, Index>(model::segment_rows(stream), d_embedded.view(),
                                         gradient(table));
  }
  if (&stream == &tape_.content && !chunk_.given.empty()) {
    tape_.d_given.resize(std::ssize(chunk_.given), width);
    for (std::size_t k = 0; k < chunk_.given.size(); ++k) {
      T* from = d_embedded.view().row(chunk_.given[k]);
      std::copy_n(from, width, tape_.d_given.view().row(static_cast<Index>(k)));
      std::fill_n(from, width, T{});
    }
  }
  model::scale_words<T>(design_, stream, stream.ids, d_embedded.view());
  kernel::embedding_backward<T, TokenId>(stream.ids, d_embedded.view(),
                                         gradient(map.weight(Role::kWordTable)));
}

// How deep the backward pass goes.

namespace {

/// The lowest layer with these weights, which layers may share; their number: none has.
Index lowest_layer(const model::Design& design, Index weights) {
  Index layer = 0;
  while (layer < design.num_hidden_layers &&
         design.layers[static_cast<std::size_t>(layer)].weights != weights)
    ++layer;
  return layer;
}

}  // namespace

template <class T>
void Encoder<T>::find_lowest() {
  const bool input = scheme_ != nullptr && scheme_->facts().input;
  learns_ = learns_embeddings_ = false;
  lowest_ = design_.num_hidden_layers;
  map_.for_each([&](model::Role role, bool, Index layer, Index, Index parameter) {
    const NetworkPart part = network_part(role);
    if (!(*parameters_)[parameter].trained || part == NetworkPart::kHead) return;
    learns_ = true;
    const bool position =
        role == model::Role::kPositionPart || role == model::Role::kSharedPositionPart;
    if (part == NetworkPart::kEmbeddings || (position && input)) {
      learns_embeddings_ = true;
    } else if (part == NetworkPart::kAllLayers) {
      lowest_ = 0;
    } else if (part == NetworkPart::kLayers) {
      lowest_ = std::min(lowest_, lowest_layer(design_, layer));
    }
  });
  learns_detector_ = detector_ && any_trained(map_.detector(), *parameters_);
  learns_ = learns_ || learns_detector_ || wants_source_;
  // Every layer reads the source.
  if (wants_source_) lowest_ = 0;
}

template <class T>
std::vector<Index> Encoder<T>::last_layers() const {
  constexpr Index kAfterAll = -1;
  const Index layers = design_.num_hidden_layers;
  std::vector<Index> last(static_cast<std::size_t>(parameters_->count()), layers);
  const auto at_most = [&](Index parameter, Index layer) {
    Index& own = last[static_cast<std::size_t>(parameter)];
    own = std::min(own, layer);
  };
  map_.for_each([&](model::Role role, bool, Index layer, Index, Index parameter) {
    const NetworkPart part = network_part(role);
    if (part == NetworkPart::kHead || part == NetworkPart::kEnd) return;
    // A position scheme may act on the embeddings, and the divergence of latents comes last.
    const bool own = part == NetworkPart::kLayers && role != model::Role::kPositionPart &&
                     role != model::Role::kLatentKappa;
    at_most(parameter, own ? lowest_layer(design_, layer) : kAfterAll);
  });
  if (detector_) {
    map_.detector().for_each(
        [&](model::Role, bool, Index, Index, Index parameter) { at_most(parameter, kAfterAll); });
  }
  return last;
}

// The latent bottlenecks of an encoder: their noise, and the backward pass of
// model/forward/latent_forward.hpp.

namespace {

/// Where the concentration of a bottleneck that learns it stands.
Index kappa_parameter(const model::Design& design, const ParameterMap& map, Index bottleneck) {
  const auto layer = static_cast<std::size_t>(model::first_latent_layer(design) + bottleneck);
  return map.weight(model::Role::kLatentKappa, design.layers[layer].weights);
}

}  // namespace

template <class T>
void EncoderRun<T>::make_latents() {
  const auto& latent = design_.variants.latent;
  if (!latent) return;
  tape_.latents.resize(static_cast<std::size_t>(latent->layers));
  if (!dropout_.draws_latents) return;
  const bool learned = latent->learned_kappa;
  const Index sequences = tape_.content.sequences();
  for (Index m = 0; m < latent->layers; ++m) {
    LatentTape<T>& own = tape_.latents[static_cast<std::size_t>(m)];
    own.cosines.resize(static_cast<std::size_t>(sequences));
    own.normal.resize(sequences, latent->size);
    own.kappa = encoder_.kappa(m);
    own.slopes.assign(learned ? own.cosines.size() : 0, 0);
    const double mean = learned ? nn::mean_sphere_cosine(latent->size, own.kappa) : 0;
    const RandomStream angles(dropout_.seed, fmt::format("latent {} cosine", m), dropout_.step);
    const RandomStream normal(dropout_.seed, fmt::format("latent {} normal", m), dropout_.step);
    for (Index s = 0; s < sequences; ++s) {
      // By the place of the sequence in the step, however it is cut into chunks.
      const auto place = static_cast<std::uint64_t>(dropout_.first_row + tape_.content.begin(s));
      double& cosine = own.cosines[static_cast<std::size_t>(s)];
      cosine = nn::draw_sphere_cosine(latent->size, own.kappa, angles, place);
      if (learned)
        own.slopes[static_cast<std::size_t>(s)] =
            nn::sphere_cosine_slope(latent->size, own.kappa, mean, cosine);
      normal.normal(place * static_cast<std::uint64_t>(latent->size),
                    static_cast<std::size_t>(latent->size), own.normal.view().row(s));
    }
  }
}

template <class T>
nn::SphereNoise<T> EncoderRun<T>::latent_noise(Index l, Index s) {
  if (!dropout_.draws_latents) return {};
  const LatentTape<T>& own = latent_memory(l);
  const auto at = static_cast<std::size_t>(s);
  T cosine = static_cast<T>(own.cosines[at]);
  if constexpr (std::is_same_v<T, std::complex<double>>) {
    if (!own.slopes.empty())
      cosine += (std::exp(matrix(Role::kLatentKappa, l).at(0, 0)) - own.kappa) * own.slopes[at];
  }
  return {cosine, own.normal.view().row_span(s)};
}

template <class T>
void EncoderRun<T>::latent_backward(Index l, MatrixView<T> d) {
  const LatentTape<T>& own = latent_memory(l);
  const Index w = weights_of(l);
  const MatrixView<const T> input = matrix(Role::kLatentInput, l);
  const MatrixView<const T> output = matrix(Role::kLatentOutput, l);
  const MatrixView<T> d_input = gradient(encoder_.map_.weight(Role::kLatentInput, w));
  const MatrixView<T> d_output = gradient(encoder_.map_.weight(Role::kLatentOutput, w));
  const MatrixView<T> d_kappa = gradient(encoder_.map_.weight(Role::kLatentKappa, w));
  const auto size = static_cast<std::size_t>(input.rows);
  std::vector<T> d_sample(size), d_mean(size), d_projected(size);
  for (Index s = 0; s < tape_.content.sequences(); ++s) {
    if (tape_.content.count(s) == 0) continue;
    const std::span<T> d_state = d.row_span(tape_.content.begin(s));
    const auto before = own.states.view().row_span(s);
    const auto sample = own.samples.view().row_span(s);
    std::ranges::fill(d_sample, T{});
    std::ranges::fill(d_mean, T{});
    std::ranges::fill(d_projected, T{});
    for (Index c = 0; c < output.rows; ++c) {
      const T from = d_state[static_cast<std::size_t>(c)];
      for (std::size_t k = 0; k < size; ++k) {
        d_sample[k] += output.at(c, static_cast<Index>(k)) * from;
        if (d_output.data != nullptr) d_output.at(c, static_cast<Index>(k)) += sample[k] * from;
      }
    }
    const auto mean = own.means.view().row_span(s);
    const T d_cosine = nn::sphere_sample_backward<T>(mean, latent_noise(l, s), d_sample, d_mean);
    if (d_kappa.data != nullptr && !own.slopes.empty())
      d_kappa.at(0, 0) +=
          d_cosine * static_cast<T>(own.slopes[static_cast<std::size_t>(s)] * own.kappa);
    nn::sphere_direction_backward<T>(mean, own.norms.view().at(s, 0), d_mean, d_projected);
    std::ranges::fill(d_state, T{});
    for (std::size_t k = 0; k < size; ++k) {
      const auto row = static_cast<Index>(k);
      for (Index c = 0; c < input.columns; ++c) {
        const auto at = static_cast<std::size_t>(c);
        d_state[at] += input.at(row, c) * d_projected[k];
        if (d_input.data != nullptr) d_input.at(row, c) += d_projected[k] * before[at];
      }
    }
  }
}

template <class T>
double Encoder<T>::kappa(Index bottleneck) const {
  const model::LatentDesign& latent = design_.variants.latent.value();
  if (!latent.learned_kappa) return latent.kappa;
  const T logarithm = parameters_->value(kappa_parameter(design_, map_, bottleneck)).at(0, 0);
  return std::clamp(std::exp(static_cast<double>(std::real(logarithm))), 1e-6, 1e6);
}

template <class T>
double Encoder<T>::add_divergence(double weight, double least) {
  const model::LatentDesign& latent = design_.variants.latent.value();
  double sum = 0;
  for (Index m = 0; m < latent.layers; ++m) {
    const double kappa = this->kappa(m);
    const double own = nn::sphere_divergence(latent.size, kappa);
    sum += own;
    if (weight == 0 || own <= least) continue;
    const MatrixView<T> d = parameters_->gradient(kappa_parameter(design_, map_, m));
    if (d.data != nullptr)
      d.at(0, 0) +=
          static_cast<T>(weight * kappa * nn::sphere_divergence_slope(latent.size, kappa));
  }
  return sum;
}

// The detector of an encoder that masks softly, forward and backward. The mixture itself is in
// model/forward/soft_mask_forward.hpp.

template <class T>
ExampleChunk EncoderRun<T>::detector_chunk() const {
  ExampleChunk chunk = chunk_;
  chunk.want_all();
  chunk.given = chunk.wanted;
  return chunk;
}

template <class T>
DropoutOptions EncoderRun<T>::detector_dropout() const {
  DropoutOptions other = dropout_;
  other.seed = ~dropout_.seed;  // the detector's has nothing to do with that of the layers
  return other;
}

template <class T>
void EncoderRun<T>::detect(MatrixView<const T> e, MatrixView<T> logits) {
  SoftMaskTape<T>& own = tape_.soft_mask;
  const auto& detector = *encoder_.detector_;
  if (!own.detector) own.detector = std::make_unique<Tape<T>>();
  kernel::copy_rows<T>(e, model::resized(own.detector->given, e.rows, e.columns));
  own.last.resize(e.rows, detector.encoder.design().hidden_size);
  detector.encoder.forward(detector_chunk(), detector_dropout(), *own.detector, own.last.view());
  detector.decoder.forward(own.last.view(), logits);
  own.d_logits = Matrix<T>::zero(e.rows, 1);
}

template <class T>
void EncoderRun<T>::soft_mask_backward(MatrixView<const T> d_last) {
  SoftMaskTape<T>& own = tape_.soft_mask;
  const auto& detector = *encoder_.detector_;
  const MatrixView<const T> d_mixed = tape_.d_content.view();
  const Index n = d_mixed.rows;
  const Index width = d_mixed.columns;
  const MatrixView<T> d_plain = model::resized(own.d_plain, n, width);
  const MatrixView<T> d_masked = model::resized(own.d_masked, n, width);
  const MatrixView<T> d_logits = own.d_logits.view();
  const MatrixView<T> mask = own.masked.x[0].view();
  const MatrixView<T> plain = own.plain.view();
  const MatrixView<T> probabilities = own.probabilities.view();
  kernel::for_rows(n, width, [&](Index i) {
    const T p = probabilities.at(i, 0);
    T d_p = 0;
    for (Index c = 0; c < width; ++c) {
      const T d = d_mixed.at(i, c);
      d_p += d * (mask.at(i, c) - plain.at(i, c));
      d_masked.at(i, c) = p * d;
      d_plain.at(i, c) = (T(1) - p) * d;
    }
    d_logits.at(i, 0) += d_p * p * (T(1) - p);
  });
  kernel::embedding_backward<T, Index>(chunk_.wanted, d_last, d_plain);
  const bool embeddings =
      encoder_.learns_embeddings_ || (tape_.wants_given && !chunk_.given.empty());
  const MatrixView<T> d_states = model::resized(own.d_last, n, own.last.columns());
  detector.decoder.backward(own.last.view(), d_logits, false, d_states);
  own.detector->wants_given = embeddings;
  detector.encoder.backward(detector_chunk(), detector_dropout(), *own.detector, d_states);
  if (!embeddings) return;
  kernel::add_to<T>(own.detector->d_given.view(), d_plain);
  embed_backward(own.masked, d_masked);
  embed_backward(tape_.content, d_plain);
}

#define MASQUE_INSTANTIATE(T)                                                     \
  template model::EmbeddingTables<T> EncoderRun<T>::tables() const;               \
  template void EncoderRun<T>::replace_words(const Stream&, MatrixView<T>) const; \
  template bool EncoderRun<T>::acts_on_input() const;                             \
  template void Encoder<T>::find_lowest();                                        \
  template std::vector<Index> Encoder<T>::last_layers() const;                    \
  template void EncoderRun<T>::make_latents();                                    \
  template nn::SphereNoise<T> EncoderRun<T>::latent_noise(Index, Index);          \
  template double Encoder<T>::kappa(Index) const;                                 \
  template ExampleChunk EncoderRun<T>::detector_chunk() const;                    \
  template DropoutOptions EncoderRun<T>::detector_dropout() const;                \
  template void EncoderRun<T>::detect(MatrixView<const T>, MatrixView<T>);
#define MASQUE_INSTANTIATE_BACKWARD(T)                                 \
  template void EncoderRun<T>::embed_backward(Stream&, MatrixView<T>); \
  template void EncoderRun<T>::latent_backward(Index, MatrixView<T>);  \
  template double Encoder<T>::add_divergence(double, double);          \
  template void EncoderRun<T>::soft_mask_backward(MatrixView<const T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
MASQUE_INSTANTIATE_BACKWARD(float)
MASQUE_INSTANTIATE_BACKWARD(double)
#undef MASQUE_INSTANTIATE
#undef MASQUE_INSTANTIATE_BACKWARD

}  // namespace masque::train
