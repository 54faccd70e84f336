// The latent bottlenecks of an encoder: their noise, and the backward pass of
// model/forward/latent_forward.hpp.
#include <algorithm>
#include <cmath>
#include <complex>

#include <fmt/format.h>

#include "train/network/encoder_run.hpp"

namespace masque::train {

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

namespace {

/// Where the concentration of a bottleneck that learns it stands.
Index kappa_parameter(const model::Design& design, const ParameterMap& map, Index bottleneck) {
  const auto layer = static_cast<std::size_t>(model::first_latent_layer(design) + bottleneck);
  return map.weight(model::Role::kLatentKappa, design.layers[layer].weights);
}

}  // namespace

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

#define MASQUE_INSTANTIATE(T)                     \
  template void EncoderRun<T>::make_latents();    \
  template double Encoder<T>::kappa(Index) const; \
  template nn::SphereNoise<T> EncoderRun<T>::latent_noise(Index, Index);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE
template double Encoder<float>::add_divergence(double, double);
template double Encoder<double>::add_divergence(double, double);
template void EncoderRun<float>::latent_backward(Index, MatrixView<float>);
template void EncoderRun<double>::latent_backward(Index, MatrixView<double>);

}  // namespace masque::train
