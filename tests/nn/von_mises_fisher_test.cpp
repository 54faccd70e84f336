// The von Mises–Fisher distribution: samples against the density, gradients by complex step.
#include "nn/von_mises_fisher.hpp"

#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

namespace masque::nn {
namespace {

/// ∫ over [from, to] of the density of the cosine, up to a factor, by the midpoint rule.
double integral(Index size, double kappa, double from, double to) {
  constexpr int kSteps = 4000;
  double sum = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double w = from + (to - from) * (i + 0.5) / kSteps;
    sum += std::exp(kappa * (w - 1)) * std::pow(1 - w * w, static_cast<double>(size - 3) / 2);
  }
  return sum * (to - from) / kSteps;
}

}  // namespace

TEST_CASE("cosines are drawn from their density") {
  struct Row {
    Index size;
    double kappa;
  };
  for (const Row& row : {Row{3, 0.5}, {3, 32}, {16, 32}, {16, 2}, {64, 100}, {5, 1000}}) {
    CAPTURE(row.size);
    CAPTURE(row.kappa);
    constexpr int kDraws = 20000;
    constexpr int kBins = 20;
    // Bins of the same probability: Pearson's χ² of 19 degrees is above 43.8 once in a thousand
    // times.
    std::vector<double> cosines;
    const RandomStream stream(7, "test");
    for (int i = 0; i < kDraws; ++i)
      cosines.push_back(
          draw_sphere_cosine(row.size, row.kappa, stream, static_cast<std::uint64_t>(i)));
    const double all = integral(row.size, row.kappa, -1, 1);
    std::vector<double> edges{-1};
    for (int b = 1; b < kBins; ++b) {
      double low = edges.back();
      double high = 1;
      for (int turn = 0; turn < 40; ++turn) {
        const double middle = (low + high) / 2;
        (integral(row.size, row.kappa, -1, middle) / all < double(b) / kBins ? low : high) = middle;
      }
      edges.push_back(low);
    }
    edges.push_back(1);
    std::vector<int> counts(kBins, 0);
    double mean = 0;
    for (const double w : cosines) {
      REQUIRE(std::abs(w) <= 1);
      mean += w / kDraws;
      int b = 0;
      while (b + 1 < kBins && w >= edges[static_cast<std::size_t>(b) + 1]) ++b;
      ++counts[static_cast<std::size_t>(b)];
    }
    double squares = 0;
    const double expected = double(kDraws) / kBins;
    for (const int count : counts) squares += (count - expected) * (count - expected) / expected;
    CHECK(squares < 43.8);
    CHECK(mean == doctest::Approx(mean_sphere_cosine(row.size, row.kappa)).epsilon(0.02));
  }
}

TEST_CASE("mean cosine and divergence are those of closed forms and Bessel functions") {
  for (const double kappa : {0.01, 1.0, 32.0, 200.0}) {
    CAPTURE(kappa);
    // On the ordinary sphere: coth κ − 1/κ, and log(κ / sinh κ) + κ (coth κ − 1/κ).
    const double three = 1 / std::tanh(kappa) - 1 / kappa;
    CHECK(std::abs(mean_sphere_cosine(3, kappa) - three) < 1e-10);
    const double log_sinh = kappa + std::log1p(-std::exp(-2 * kappa)) - std::log(2.0);
    CHECK(std::abs(sphere_divergence(3, kappa) - (std::log(kappa) - log_sinh + kappa * three)) <
          1e-9);
    for (const Index size : {2, 4, 16}) {
      const double order = static_cast<double>(size) / 2;
      const double ratio = std::cyl_bessel_i(order, kappa) / std::cyl_bessel_i(order - 1, kappa);
      CHECK(std::abs(mean_sphere_cosine(size, kappa) - ratio) < 1e-9);
    }
  }
  CHECK(sphere_divergence(16, 1e-9) == doctest::Approx(0));
  CHECK(sphere_divergence(16, 64) > sphere_divergence(16, 32));
  // Where Bessel functions and powers leave the range of numbers: A ≈ κ / (d/2 + √(d²/4 + κ²)).
  for (const double kappa : {1.0, 1e4, 1e6}) {
    const double about = kappa / (5000 + std::sqrt(5000.0 * 5000 + kappa * kappa));
    CHECK(std::abs(mean_sphere_cosine(10000, kappa) - about) < 1e-3 * about);
    CHECK(sphere_divergence(10000, kappa) > 0);
    CHECK(std::isfinite(sphere_divergence(10000, kappa)));
  }
}

TEST_CASE("samples have the drawn cosine, and gradients are those of complex steps") {
  using Complex = std::complex<double>;
  constexpr std::size_t kSize = 7;
  std::vector<double> u(kSize), normal(kSize), weight(kSize);
  const RandomStream stream(3, "sphere");
  stream.normal(0, kSize, u.data());
  stream.normal(100, kSize, normal.data());
  stream.normal(200, kSize, weight.data());
  for (const double cosine : {0.8, -0.3, 1.0}) {
    const auto loss = [&](const auto& input) {
      using T = typename std::decay_t<decltype(input)>::value_type;
      std::vector<T> mean(kSize), z(kSize);
      sphere_direction<T>(std::span<const T>(input), std::span<T>(mean));
      sphere_sample<T>(std::span<const T>(mean), SphereNoise<T>{T(cosine), normal},
                       std::span<T>(z));
      T sum{};
      for (std::size_t i = 0; i < kSize; ++i) sum += T(weight[i]) * z[i] * z[i] * z[i] + z[i];
      return sum;
    };
    std::vector<double> mean(kSize), z(kSize), d_z(kSize), d_mean(kSize), d_u(kSize);
    const SphereNoise<double> noise{cosine, normal};
    const double norm = sphere_direction<double>(u, mean);
    sphere_sample<double>(mean, noise, z);
    CHECK(std::abs(std::inner_product(z.begin(), z.end(), z.begin(), 0.0) - 1) < 1e-12);
    CHECK(std::abs(std::inner_product(z.begin(), z.end(), mean.begin(), 0.0) - cosine) < 1e-12);
    for (std::size_t i = 0; i < kSize; ++i) d_z[i] = 3 * weight[i] * z[i] * z[i] + 1;
    sphere_sample_backward<double>(mean, noise, d_z, d_mean);
    sphere_direction_backward<double>(mean, norm, d_mean, d_u);
    for (std::size_t i = 0; i < kSize; ++i) {
      std::vector<Complex> moved(u.begin(), u.end());
      moved[i] += Complex(0, 1e-30);
      CHECK(std::abs(loss(moved).imag() / 1e-30 - d_u[i]) < 1e-11);
    }
  }
}

namespace {

/// The share of the density below w, by the midpoint rule in θ.
double share_below(Index size, double kappa, double w) {
  constexpr int kPieces = 20000;
  const auto integral = [&](double from, double to) {
    double sum = 0;
    for (int i = 0; i < kPieces; ++i) {
      const double theta = from + (to - from) * (i + 0.5) / kPieces;
      sum += std::exp(kappa * (std::cos(theta) - 1)) *
             std::pow(std::sin(theta), static_cast<double>(size - 2));
    }
    return sum * (to - from) / kPieces;
  };
  const double angle = std::acos(w), pi = std::acos(-1.0);
  const double below = integral(angle, pi);
  return below / (below + integral(0, angle));
}

}  // namespace

TEST_CASE("the slope of a cosine by its concentration keeps its place in the distribution") {
  for (const auto& [size, kappa] :
       {std::pair<Index, double>{2, 3}, {3, 0.5}, {4, 32}, {16, 32}, {64, 20}}) {
    CAPTURE(size);
    CAPTURE(kappa);
    const double mean = mean_sphere_cosine(size, kappa);
    for (const double w : {-0.4, 0.1, 0.6, 0.9}) {
      CAPTURE(w);
      const double share = share_below(size, kappa, w);
      if (share < 1e-6 || share > 1 - 1e-6) continue;
      // The cosine of the same share at κ ± h, by bisection.
      const double h = 1e-3 * kappa;
      const auto moved = [&](double other) {
        double low = -1, high = 1;
        for (int i = 0; i < 60; ++i) {
          const double middle = (low + high) / 2;
          (share_below(size, other, middle) < share ? low : high) = middle;
        }
        return low;
      };
      const double expected = (moved(kappa + h) - moved(kappa - h)) / (2 * h);
      CHECK(std::abs(sphere_cosine_slope(size, kappa, mean, w) - expected) <
            1e-4 * std::abs(expected) + 1e-8);
    }
  }
}

TEST_CASE("slopes of the divergence and of the mean cosine") {
  for (const auto& [size, kappa] :
       {std::pair<Index, double>{2, 3}, {3, 0.5}, {16, 32}, {128, 100}}) {
    CAPTURE(size);
    const double h = 1e-4 * kappa;
    const double divergence =
        (sphere_divergence(size, kappa + h) - sphere_divergence(size, kappa - h)) / (2 * h);
    CHECK(std::abs(sphere_divergence_slope(size, kappa) - divergence) < 1e-5 * divergence);
    // The mean of the slopes of draws is the slope of the mean, the variance.
    constexpr std::uint64_t kDraws = 4000;
    const RandomStream stream(5, "slopes");
    const double mean = mean_sphere_cosine(size, kappa);
    double sum = 0, squares = 0;
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double slope =
          sphere_cosine_slope(size, kappa, mean, draw_sphere_cosine(size, kappa, stream, i));
      sum += slope;
      squares += slope * slope;
    }
    const double found = sum / kDraws;
    const double deviation = std::sqrt((squares / kDraws - found * found) / kDraws);
    CHECK(std::abs(found - divergence / kappa) < 5 * deviation);
  }
}

}  // namespace masque::nn
