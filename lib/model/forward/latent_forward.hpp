// The bottlenecks of UniVAE: what the first row of a sequence hands on passes a point on a sphere.
// Su 2021, kexue.fm/archives/8475. Once for inference and training.
#pragma once

#include <span>

#include "model/forward/forward.hpp"
#include "model/role.hpp"
#include "model/variants.hpp"
#include "nn/von_mises_fisher.hpp"

namespace masque::model {

/// What a bottleneck makes of the first rows of a chunk, one row a sequence.
template <class T>
struct LatentMemory {
  Matrix<T> states;   ///< h (sequences, hidden size): what they were
  Matrix<T> norms;    ///< ‖W h‖ (sequences, 1)
  Matrix<T> means;    ///< μ = W h / ‖W h‖ (sequences, size); z where it is given
  Matrix<T> samples;  ///< z (sequences, size)
};

/// At the input of layer `l`, where a bottleneck stands (VariantDesign::latent): the first row h of
/// each sequence becomes V z. z is what a caller gives; or, around μ = W h / ‖W h‖, what the noise
/// makes of it, μ itself without. Of `run`:
///
///   latent_memory(l)              the LatentMemory; kept until the backward pass with kKeeps
///   has_first_row(s)              false: the rows of sequence s continue a cached one
///   given_latent(l, s)            z of sequence s as a span of its size; empty: none is given
///   latent_noise(l, s)            the SphereNoise of sequence s
///   show_latents(l)               somebody may want the means
template <class Run>
void latent_forward(Run& run, Index l) {
  using T = typename Run::Number;
  auto& content = run.content();
  const MatrixView<const T> input = run.matrix(Role::kLatentInput, l);
  const MatrixView<const T> output = run.matrix(Role::kLatentOutput, l);
  const Index size = input.rows;
  const MatrixView<T> states = run.states(l, content);
  LatentMemory<T>& memory = run.latent_memory(l);
  const Index count = content.sequences();
  const MatrixView<T> before = resized(memory.states, count, states.columns);
  const MatrixView<T> norms = resized(memory.norms, count, 1);
  const MatrixView<T> means = resized(memory.means, count, size);
  const MatrixView<T> samples = resized(memory.samples, count, size);
  std::vector<T> projected(static_cast<std::size_t>(size));
  for (Index s = 0; s < count; ++s) {
    if (content.count(s) == 0 || !run.has_first_row(s)) continue;
    const std::span<T> h = states.row_span(content.begin(s));
    std::ranges::copy(h, before.row(s));
    for (Index k = 0; k < size; ++k) {
      T sum{};
      for (Index c = 0; c < states.columns; ++c)
        sum += input.at(k, c) * h[static_cast<std::size_t>(c)];
      projected[static_cast<std::size_t>(k)] = sum;
    }
    norms.at(s, 0) = nn::sphere_direction<T>(projected, means.row_span(s));
    if (const auto given = run.given_latent(l, s); !given.empty()) {
      for (Index k = 0; k < size; ++k) {
        const T z = static_cast<T>(given[static_cast<std::size_t>(k)]);
        means.at(s, k) = samples.at(s, k) = z;
      }
    } else {
      nn::sphere_sample<T>(means.row_span(s), run.latent_noise(l, s), samples.row_span(s));
    }
    for (Index c = 0; c < states.columns; ++c) {
      T sum{};
      for (Index k = 0; k < size; ++k) sum += output.at(c, k) * samples.at(s, k);
      h[static_cast<std::size_t>(c)] = sum;
    }
  }
  run.show_latents(l);
}

}  // namespace masque::model
