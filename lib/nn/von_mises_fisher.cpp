#include "nn/von_mises_fisher.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <type_traits>
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

/// The density e^{κ(w − 1)} (1 − w²)^{(d−3)/2}. With w = cos θ it is e^{κ(cos θ − 1)} sin^{d−2} θ
/// on [0, π], smooth, divided by its maximum.
class AngleDensity {
 public:
  AngleDensity(Index size, double kappa) : power_(static_cast<double>(size - 2)), kappa_(kappa) {
    const double cosine =
        kappa > 0 ? 2 * kappa / (power_ + std::sqrt(power_ * power_ + 4 * kappa * kappa)) : 0;
    mode_ = power_ == 0 ? 0 : std::acos(cosine);
    const double curvature = kappa * cosine + (power_ == 0 ? 0 : power_ / (1 - cosine * cosine));
    const double reach = curvature > 0 ? 40 / std::sqrt(curvature) : std::numbers::pi;
    begin_ = std::max(0.0, mode_ - reach);
    end_ = std::min(std::numbers::pi, mode_ + reach);
    largest_ = logarithm(mode_);
  }

  double mode() const { return mode_; }
  /// Within 40 standard deviations of the maximum.
  double begin() const { return begin_; }
  double end() const { return end_; }
  double largest_logarithm() const { return largest_; }
  /// Without the division.
  double logarithm(double theta) const {
    // 1 − cos θ without cancellation.
    const double half = std::sin(theta / 2);
    return -2 * kappa_ * half * half + (power_ == 0 ? 0 : power_ * std::log(std::sin(theta)));
  }
  double at(double theta) const { return std::exp(logarithm(theta) - largest_); }

 private:
  double power_, kappa_;
  double mode_ = 0, begin_ = 0, end_ = 0, largest_ = 0;
};

/// Calls add(θ, weight) for the places of Simpson's rule on [begin, end]; `pieces` is even.
template <class Add>
void integrate(double begin, double end, int pieces, const Add& add) {
  const double step = (end - begin) / pieces;
  for (int i = 0; i <= pieces; ++i) {
    const double weight = i == 0 || i == pieces ? 1 : i % 2 == 1 ? 4 : 2;
    add(begin + step * i, weight * step / 3);
  }
}

/// Of that density: the logarithm of its integral, the mean of 1 − w and that of its square.
struct Moments {
  double log_whole = 0, complement = 0, square = 0;
};
Moments moments_of(Index size, double kappa) {
  const AngleDensity density(size, kappa);
  double whole = 0, complement = 0, square = 0;
  integrate(density.begin(), density.end(), 20000, [&](double theta, double weight) {
    const double half = std::sin(theta / 2);
    const double one = 2 * half * half;
    const double own = weight * density.at(theta);
    whole += own;
    complement += own * one;
    square += own * one * one;
  });
  return {density.largest_logarithm() + std::log(whole), complement / whole, square / whole};
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

double sphere_divergence_slope(Index size, double kappa) {
  const Moments own = moments_of(size, kappa);
  return kappa * (own.square - own.complement * own.complement);
}

double sphere_cosine_slope(Index size, double kappa, double mean, double cosine) {
  const AngleDensity density(size, kappa);
  const double theta = std::acos(std::clamp(cosine, -1.0, 1.0));
  const double complement = 1 - mean;
  // ∂F/∂κ = ∫ (t − mean) f(t) dt below w, which is minus that above w: the shorter side.
  const bool above = theta <= density.mode();
  const double other = above ? density.begin() : density.end();
  double sum = 0;
  integrate(std::min(theta, other), std::max(theta, other), 1000, [&](double at, double weight) {
    const double half = std::sin(at / 2);
    sum += weight * (complement - 2 * half * half) * density.at(at);
  });
  const double own = density.at(theta);
  return own > 0 ? (above ? sum : -sum) / own * std::sin(theta) : 0;
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
Tangent<T> tangent_of(std::span<const T> mean, const SphereNoise<T>& noise) {
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

template <class T>
T sine_of(T cosine) {
  using std::sqrt;
  // Of a cosine in float: the rounding of 1 − w² would be that of the sine.
  if constexpr (std::is_same_v<T, float>) {
    const double w = cosine;
    return static_cast<float>(std::sqrt(1 - w * w));
  } else {
    return sqrt(T{1} - cosine * cosine);
  }
}

}  // namespace

template <class T>
void sphere_sample(std::span<const T> mean, const SphereNoise<T>& noise, std::span<T> z) {
  if (noise.cosine == T{1}) {
    std::copy(mean.begin(), mean.end(), z.begin());
    return;
  }
  const Tangent<T> tangent = tangent_of(mean, noise);
  const T w = noise.cosine;
  const T sine = sine_of(w);
  for (std::size_t i = 0; i < mean.size(); ++i) z[i] = w * mean[i] + sine * tangent.direction[i];
}

template <class T>
T sphere_sample_backward(std::span<const T> mean, const SphereNoise<T>& noise,
                         std::span<const T> d_z, std::span<T> d_mean) {
  const T w = noise.cosine;
  for (std::size_t i = 0; i < mean.size(); ++i) d_mean[i] += w * d_z[i];
  if (w == T{1}) return T{};
  const Tangent<T> tangent = tangent_of(mean, noise);
  const T sine = sine_of(w);
  std::vector<T> d_rest(mean.size());
  std::vector<T> d_direction(mean.size());
  for (std::size_t i = 0; i < mean.size(); ++i) d_direction[i] = sine * d_z[i];
  sphere_direction_backward<T>(tangent.direction, tangent.norm, d_direction, d_rest);
  // rest = normal − (normal · μ) μ
  const T across = dot<T>(d_rest, mean);
  for (std::size_t i = 0; i < mean.size(); ++i)
    d_mean[i] -= tangent.along * d_rest[i] + across * static_cast<T>(noise.normal[i]);
  const T along = dot<T>(d_z, mean);
  return sine == T{} ? along : along - w / sine * dot<T>(d_z, tangent.direction);
}

#define MASQUE_INSTANTIATE(T)                                                              \
  template T sphere_direction<T>(std::span<const T>, std::span<T>);                        \
  template void sphere_direction_backward<T>(std::span<const T>, T, std::span<const T>,    \
                                             std::span<T>);                                \
  template void sphere_sample<T>(std::span<const T>, const SphereNoise<T>&, std::span<T>); \
  template T sphere_sample_backward<T>(std::span<const T>, const SphereNoise<T>&,          \
                                       std::span<const T>, std::span<T>);
MASQUE_INSTANTIATE(float)
MASQUE_INSTANTIATE(double)
MASQUE_INSTANTIATE(std::complex<double>)
#undef MASQUE_INSTANTIATE

}  // namespace masque::nn
