// The von Mises–Fisher distribution on the unit sphere in d dimensions: density ∝ e^{κ μ·z} around
// a mean direction μ. Davidson et al. 2018, arXiv:1804.00891.
#pragma once

#include <span>

#include "base/random.hpp"
#include "base/types.hpp"

namespace masque::nn {

/// A draw apart from its mean direction, so that the sample is a smooth function of that:
/// z = w μ + √(1 − w²) ν, where w is `cosine` and ν the direction of what `normal` has at right
/// angles to μ. With cosine 1: μ itself.
template <class T>
struct SphereNoise {
  T cosine = 1;
  std::span<const double> normal;  ///< d standard normal numbers
};

/// The cosine of the angle between a sample and its mean direction: from the density
/// ∝ e^{κw} (1 − w²)^{(d−3)/2} on [−1, 1], exactly, by rejection (Wood 1994,
/// doi:10.1080/03610919408813161). `size` d ≥ 2, κ > 0. A function of the stream and the place,
/// below 2^32, alone.
double draw_sphere_cosine(Index size, double kappa, const RandomStream& stream,
                          std::uint64_t place);

/// The mean of that cosine: I_{d/2}(κ) / I_{d/2−1}(κ), by integration.
double mean_sphere_cosine(Index size, double kappa);

/// The Kullback–Leibler divergence from the uniform distribution on the sphere, in nats: what a
/// vector says at most. By integration.
double sphere_divergence(Index size, double kappa);

/// The slope of that divergence by κ: κ times the variance of the cosine.
double sphere_divergence_slope(Index size, double kappa);

/// The slope of a drawn cosine by κ, with its place in the distribution F held: −(∂F/∂κ) / (∂F/∂w)
/// (Figurnov et al. 2018, arXiv:1805.08498). `mean` is mean_sphere_cosine(size, kappa). By
/// integration.
double sphere_cosine_slope(Index size, double kappa, double mean, double cosine);

/// mean ← u / ‖u‖; returns ‖u‖. T may be complex. Zeros stay.
template <class T>
T sphere_direction(std::span<const T> u, std::span<T> mean);
/// Adds to d_u, from what sphere_direction() gave.
template <class T>
void sphere_direction_backward(std::span<const T> mean, T norm, std::span<const T> d_mean,
                               std::span<T> d_u);

/// z of SphereNoise; T may be complex. With cosine 1 the normal numbers are not read.
template <class T>
void sphere_sample(std::span<const T> mean, const SphereNoise<T>& noise, std::span<T> z);
/// Adds to d_mean, with the noise held; returns the gradient by the cosine, 0 of the cosine 1.
template <class T>
T sphere_sample_backward(std::span<const T> mean, const SphereNoise<T>& noise,
                         std::span<const T> d_z, std::span<T> d_mean);

}  // namespace masque::nn
