#include "nn/von_mises_fisher.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "base/error.hpp"

namespace masque::nn {

namespace {

// Rounding keeps a sum of squares of this size from being divided by zero.
constexpr double kLeast = 1e-24;

template <class T>
T dot(std::span<const T> a, std::span<const T> b) {
  T sum{};
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Twice a Gamma(size / 2) number: the sum of squares of normal ones.
double sum_of_squares(Index size, const RandomStream& stream, std::uint64_t first) {
  std::array<double, 64> some{};
  double sum = 0;
  for (Index done = 0; done < size;) {
    const auto count = static_cast<std::size_t>(std::min<Index>(size - done, some.size()));
    stream.normal(first + static_cast<std::uint64_t>(done), count, some.data());
    for (std::size_t i = 0; i < count; ++i) sum += some[i] * some[i];
    done += static_cast<Index>(count);
  }
  return sum;
}

/// Of the density e^{κ(w − 1)} (1 − w²)^{(d−3)/2}: the logarithm of its integral, and the mean of
/// 1 − w. With w = cos θ the integrand is e^{κ(cos θ − 1)} sin^{d−2} θ on [0, π], smooth; Simpson's
/// rule within 40 standard deviations of its maximum, by which it is divided.
struct Moments {
  double log_whole = 0, complement = 0;
};
Moments moments_of(Index size, double kappa) {
  constexpr int kPoints = 20000;
  const auto power = static_cast<double>(size - 2);
  const auto log_density = [&](double theta) {
    const double half = std::sin(theta / 2);
    // 1 − cos θ without cancellation.
    return -2 * kappa * half * half + (power == 0 ? 0 : power * std::log(std::sin(theta)));
  };
  const double cosine =
      kappa > 0 ? 2 * kappa / (power + std::sqrt(power * power + 4 * kappa * kappa)) : 0;
  const double mode = power == 0 ? 0 : std::acos(cosine);
  const double curvature = kappa * cosine + (power == 0 ? 0 : power / (1 - cosine * cosine));
  const double reach = curvature > 0 ? 40 / std::sqrt(curvature) : std::numbers::pi;
  const double begin = std::max(0.0, mode - reach);
  const double step = (std::min(std::numbers::pi, mode + reach) - begin) / kPoints;
  const double largest = log_density(mode);
  double whole = 0, complement = 0;
  for (int i = 0; i <= kPoints; ++i) {
    const double theta = begin + step * i;
    const double half = std::sin(theta / 2);
    const double weight = (i == 0 || i == kPoints ? 1 : i % 2 == 1 ? 4 : 2) * step / 3;
    const double density = weight * std::exp(log_density(theta) - largest);
    whole += density;
    complement += density * 2 * half * half;
  }
  return {largest + std::log(whole), complement / whole};
}

}  // namespace

double draw_sphere_cosine(Index size, double kappa, const RandomStream& stream,
                          std::uint64_t place) {
  MASQUE_CHECK(size >= 2 && kappa > 0);
  const auto m = static_cast<double>(size - 1);
  const double b = m / (2 * kappa + std::sqrt(4 * kappa * kappa + m * m));
  const double x = (1 - b) / (1 + b);
  const double c = kappa * x + m * std::log(1 - x * x);
  const auto many = static_cast<std::uint64_t>(size - 1);
  // Each place has blocks of its own; of these each attempt takes one for a uniform number and
  // those of its normal ones.
  const std::uint64_t blocks = 1 + (2 * many + 3) / 4;
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t block = (place << 24) + attempt * blocks;
    const double u = (stream.block(block)[0] + 0.5) * 0x1p-32;
    // Beta(m/2, m/2)
    const double one = sum_of_squares(size - 1, stream, 4 * (block + 1));
    const double other = sum_of_squares(size - 1, stream, 4 * (block + 1) + many);
    const double z = one / (one + other);
    const double w = (1 - (1 + b) * z) / (1 - (1 - b) * z);
    if (kappa * w + m * std::log(1 - x * w) - c >= std::log(u)) return w;
  }
}

double mean_sphere_cosine(Index size, double kappa) {
  return 1 - moments_of(size, kappa).complement;
}

double sphere_divergence(Index size, double kappa) {
  const Moments own = moments_of(size, kappa);
  const Moments uniform = moments_of(size, 0);
  // E[κ(w − 1)] − log ∫ e^{κ(w−1)} … + log ∫ … of κ = 0
  return -kappa * own.complement - own.log_whole + uniform.log_whole;
}

template <class T>
T sphere_direction(std::span<const T> u, std::span<T> mean) {
  using std::sqrt;
  const T norm = sqrt(dot(u, u) + static_cast<T>(kLeast));
  for (std::size_t i = 0; i < u.size(); ++i) mean[i] = u[i] / norm;
  return norm;
}

template <class T>
void sphere_direction_backward(std::span<const T> mean, T norm, std::span<const T> d_mean,
                               std::span<T> d_u) {
  const T along = dot(d_mean, mean);
  for (std::size_t i = 0; i < mean.size(); ++i) d_u[i] += (d_mean[i] - along * mean[i]) / norm;
}

namespace {

/// ν, and what its gradient needs.
template <class T>
struct Tangent {
  std::vector<T> direction;
  T along{};  // normal · μ
  T norm{};
};
template <class T>
Tangent<T> tangent_of(std::span<const T> mean, const SphereNoise& noise) {
  Tangent<T> tangent;
  for (std::size_t i = 0; i < mean.size(); ++i)
    tangent.along += static_cast<T>(noise.normal[i]) * mean[i];
  std::vector<T> rest(mean.size());
  for (std::size_t i = 0; i < mean.size(); ++i)
    rest[i] = static_cast<T>(noise.normal[i]) - tangent.along * mean[i];
  tangent.direction.resize(mean.size());
  tangent.norm = sphere_direction<T>(rest, tangent.direction);
  return tangent;
}

}  // namespace

template <class T>
void sphere_sample(std::span<const T> mean, const SphereNoise& noise, std::span<T> z) {
  if (noise.cosine == 1) {
    std::copy(mean.begin(), mean.end(), z.begin());
    return;
  }
  const Tangent<T> tangent = tangent_of(mean, noise);
  const T w = static_cast<T>(noise.cosine);
  const T sine = static_cast<T>(std::sqrt(1 - noise.cosine * noise.cosine));
  for (std::size_t i = 0; i < mean.size(); ++i) z[i] = w * mean[i] + sine * tangent.direction[i];
}

template <class T>
void sphere_sample_backward(std::span<const T> mean, const SphereNoise& noise,
                            std::span<const T> d_z, std::span<T> d_mean) {
  const T w = static_cast<T>(noise.cosine);
  for (std::size_t i = 0; i < mean.size(); ++i) d_mean[i] += w * d_z[i];
  if (noise.cosine == 1) return;
  const Tangent<T> tangent = tangent_of(mean, noise);
  const T sine = static_cast<T>(std::sqrt(1 - noise.cosine * noise.cosine));
  std::vector<T> d_rest(mean.size());
  std::vector<T> d_direction(mean.size());
  for (std::size_t i = 0; i < mean.size(); ++i) d_direction[i] = sine * d_z[i];
  sphere_direction_backward<T>(tangent.direction, tangent.norm, d_direction, d_rest);
  // rest = normal − (normal · μ) μ
  const T across = dot<T>(d_rest, mean);
  for (std::size_t i = 0; i < mean.size(); ++i)
    d_mean[i] -= tangent.along * d_rest[i] + across * static_cast<T>(noise.normal[i]);
}

#define MASQUE_INSTANTIATE(T)                                                           \
  template T sphere_direction<T>(std::span<const T>, std::span<T>);                     \
  template void sphere_direction_backward<T>(std::span<const T>, T, std::span<const T>, \
                                             std::span<T>);                             \
  template void sphere_sample<T>(std::span<const T>, const SphereNoise&, std::span<T>); \
  template void sphere_sample_backward<T>(std::span<const T>, const SphereNoise&,       \
                                          std::span<const T>, std::span<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::nn
