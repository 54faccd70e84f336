// The latent bottlenecks of an encoder: their noise, and the backward pass of
// model/forward/latent_forward.hpp.
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
  const Index sequences = tape_.content.sequences();
  for (Index m = 0; m < latent->layers; ++m) {
    LatentTape<T>& own = tape_.latents[static_cast<std::size_t>(m)];
    own.cosines.resize(static_cast<std::size_t>(sequences));
    own.normal.resize(sequences, latent->size);
    const RandomStream angles(dropout_.seed, fmt::format("latent {} cosine", m), dropout_.step);
    const RandomStream normal(dropout_.seed, fmt::format("latent {} normal", m), dropout_.step);
    for (Index s = 0; s < sequences; ++s) {
      // By the place of the sequence in the step, however it is cut into chunks.
      const auto place = static_cast<std::uint64_t>(dropout_.first_row + tape_.content.begin(s));
      own.cosines[static_cast<std::size_t>(s)] =
          nn::draw_sphere_cosine(latent->size, latent->kappa, angles, place);
      normal.normal(place * static_cast<std::uint64_t>(latent->size),
                    static_cast<std::size_t>(latent->size), own.normal.view().row(s));
    }
  }
}

template <class T>
nn::SphereNoise EncoderRun<T>::latent_noise(Index l, Index s) {
  if (!dropout_.draws_latents) return {};
  const LatentTape<T>& own = latent_memory(l);
  return {own.cosines[static_cast<std::size_t>(s)], own.normal.view().row_span(s)};
}

template <class T>
void EncoderRun<T>::latent_backward(Index l, MatrixView<T> d) {
  const LatentTape<T>& own = latent_memory(l);
  const Index w = weights_of(l);
  const MatrixView<const T> input = matrix(Role::kLatentInput, l);
  const MatrixView<const T> output = matrix(Role::kLatentOutput, l);
  const MatrixView<T> d_input = gradient(encoder_.map_.weight(Role::kLatentInput, w));
  const MatrixView<T> d_output = gradient(encoder_.map_.weight(Role::kLatentOutput, w));
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
    nn::sphere_sample_backward<T>(mean, latent_noise(l, s), d_sample, d_mean);
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

#define MASQUE_INSTANTIATE(T)                  \
  template void EncoderRun<T>::make_latents(); \
  template nn::SphereNoise EncoderRun<T>::latent_noise(Index, Index);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE
template void EncoderRun<float>::latent_backward(Index, MatrixView<float>);
template void EncoderRun<double>::latent_backward(Index, MatrixView<double>);

}  // namespace masque::train
