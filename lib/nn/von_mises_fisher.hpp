// The von Mises–Fisher distribution on the unit sphere in d dimensions: density ∝ e^{κ μ·z} around
// a mean direction μ. Davidson et al. 2018, arXiv:1804.00891.
#pragma once

#include <span>

#include "base/random/random.hpp"
#include "base/types.hpp"

namespace masque::nn {

/// A draw apart from its mean direction, so that the sample is a smooth function of that:
/// z = w μ + √(1 − w²) ν, where w is `cosine` and ν the direction of what `normal` has at right
/// angles to μ. With cosine 1: μ itself.
template <class T>
struct SphereNoise {
  T cosine = 1;                    ///< w, in [−1, 1]
  std::span<const double> normal;  ///< d standard normal numbers
};

/// A draw of the cosine of the angle between a sample and its mean direction: from the density ∝
/// e^{κw} (1 − w²)^{(d−3)/2} on [−1, 1], exactly, by rejection (Wood 1994,
/// doi:10.1080/03610919408813161). `size` d ≥ 2, `kappa` κ > 0. A function of `stream` and
/// `place`, below 2^32, alone.
double draw_sphere_cosine(Index size, double kappa, const RandomStream& stream,
                          std::uint64_t place);

/// The mean of that cosine in `size` = d dimensions with `kappa` = κ: I_{d/2}(κ) /
/// I_{d/2−1}(κ), by integration.
double mean_sphere_cosine(Index size, double kappa);

/// The Kullback–Leibler divergence of the distribution in `size` dimensions with `kappa`
/// from the uniform distribution on the sphere, in nats: a bound of the information that a
/// vector carries. By integration.
double sphere_divergence(Index size, double kappa);

/// The slope of that divergence by `kappa` in `size` dimensions: κ times the variance of
/// the cosine. By integration.
double sphere_divergence_slope(Index size, double kappa);

/// The slope of a drawn `cosine` by `kappa`, with its place in the distribution F held: −(∂F/∂κ) /
/// (∂F/∂w) (Figurnov et al. 2018, arXiv:1805.08498). `mean` is mean_sphere_cosine(size, kappa),
/// `size` the number of dimensions. By integration.
double sphere_cosine_slope(Index size, double kappa, double mean, double cosine);

/// `mean` ← `u` / ‖u‖; returns ‖u‖. T may be complex. The norm is √(‖u‖² + 1e-24), so that a zero
/// vector stays zero.
template <class T>
T sphere_direction(std::span<const T> u, std::span<T> mean);
/// From `d_mean`, the gradient by the mean, adds to `d_u`; `mean` and `norm` are
/// what sphere_direction() gave.
template <class T>
void sphere_direction_backward(std::span<const T> mean, T norm, std::span<const T> d_mean,
                               std::span<T> d_u);

/// `z` ← the sample of SphereNoise around the unit vector `mean` with `noise`, d numbers each; T
/// may be complex. With cosine 1 the normal numbers are not read.
template <class T>
void sphere_sample(std::span<const T> mean, const SphereNoise<T>& noise, std::span<T> z);
/// From `d_z`, the gradient by the sample, adds to `d_mean`, with `noise` held; `mean` is that of
/// the sample. Returns the gradient by the cosine, 0 of the cosine 1.
template <class T>
T sphere_sample_backward(std::span<const T> mean, const SphereNoise<T>& noise,
                         std::span<const T> d_z, std::span<T> d_mean);

}  // namespace masque::nn
