// The fit against what theory says of it and against a plain minimiser (acceptance test 16).
#include "evaluate/statistics/low_rank_fit.hpp"

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"

namespace masque::test {
namespace {

using evaluate::fit_low_rank;
using evaluate::LowRankFit;
using evaluate::LowRankRow;
using evaluate::random_weights;

/// softmax of the rows of Q Kᵀ for normal Q, K of a key size.
Matrix<double> weights_of_rank(Index n, Index key_size) {
  std::vector<double> x(static_cast<std::size_t>(2 * n * key_size));
  RandomStream(5, "low rank test").normal(0, x.size(), x.data());
  Matrix<double> out(n, n);
  for (Index i = 0; i < n; ++i) {
    double sum = 0;
    for (Index j = 0; j < n; ++j) {
      double score = 0;
      for (Index d = 0; d < key_size; ++d) {
        score += x[static_cast<std::size_t>(i * key_size + d)] *
                 x[static_cast<std::size_t>((n + j) * key_size + d)];
      }
      sum += out.view().at(i, j) = std::exp(score);
    }
    for (double& w : out.view().row_span(i)) w /= sum;
  }
  return out;
}

/// Mean KL of P from softmax(q kᵀ) for key size 1, x = (q, k).
double plain_kl(MatrixView<const double> p, const std::vector<double>& x) {
  const auto n = static_cast<std::size_t>(p.rows);
  double kl = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += std::exp(x[i] * x[n + j]);
    for (std::size_t j = 0; j < n; ++j) {
      const double w = p.at(static_cast<Index>(i), static_cast<Index>(j));
      kl += w * (std::log(w) - x[i] * x[n + j] + std::log(sum));
    }
  }
  return kl / static_cast<double>(n);
}

TEST_CASE("weights are rows of softmax, harder with less temperature") {
  const Matrix<double> soft = random_weights(16, 2, 1);
  const Matrix<double> hard = random_weights(16, 0.1, 1);
  double most_soft = 0, most_hard = 0;
  for (Index i = 0; i < 16; ++i) {
    const auto row = soft.view().row_span(i);
    CHECK(std::accumulate(row.begin(), row.end(), 0.0) == doctest::Approx(1).epsilon(1e-14));
    for (Index j = 0; j < 16; ++j) {
      CHECK(soft.view().at(i, j) > 0);
      most_soft = std::max(most_soft, soft.view().at(i, j));
      most_hard = std::max(most_hard, hard.view().at(i, j));
      // p_j / p_0 at temperature t is that at temperature 1 to the power of 1/t.
      CHECK(std::log(soft.view().at(i, j) / soft.view().at(i, 0)) * 2 ==
            doctest::Approx(std::log(hard.view().at(i, j) / hard.view().at(i, 0)) / 10));
    }
  }
  CHECK(most_hard > most_soft);
  CHECK_THROWS_AS(random_weights(4, 0.01, 1), UsageError);
}

TEST_CASE("KL goes to 0 at key size n - 1 and stays above 0 below it") {
  for (const double temperature : {1.0, 2.0}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Matrix<double> weights = random_weights(10, temperature, seed);
      const LowRankFit fit = fit_low_rank(
          weights.view(), {.key_sizes = {1, 2, 4, 6, 7, 8, 9, 10, 12}, .most_iterations = 5000});
      CHECK(fit.rank == 9);
      double before = 1e9;
      for (const LowRankRow& row : fit.rows) {
        CAPTURE(row.key_size);
        CHECK(row.settled);
        if (row.key_size >= 9) {
          CHECK(row.kl < 1e-11);
          CHECK(row.truncated_kl < 1e-14);
        } else {
          CHECK(row.kl > 1e-6);
          CHECK(row.kl < before);
          CHECK(row.kl < row.truncated_kl);
          before = row.kl;
        }
      }
    }
  }
}

TEST_CASE("the size of the issue's experiment: 32 rows, in seconds") {
  const Matrix<double> weights = random_weights(32, 1, 1);
  const LowRankFit fit = fit_low_rank(weights.view(), {.key_sizes = {8, 30, 31}, .restarts = 1});
  CHECK(fit.rank == 31);
  CHECK(fit.rows[0].kl > 0.05);
  CHECK(fit.rows[1].kl > 1e-6);
  CHECK(fit.rows[2].kl < 1e-11);
}

TEST_CASE("weights made with key size 3 need no more") {
  const Matrix<double> weights = weights_of_rank(12, 3);
  const LowRankFit fit = fit_low_rank(weights.view(), {.key_sizes = {2, 3, 5}});
  CHECK(fit.rank == 3);
  CHECK(fit.rows[0].kl > 1e-3);
  CHECK(fit.rows[1].kl < 1e-11);
  CHECK(fit.rows[2].kl < 1e-11);
}

TEST_CASE("the minimum for key size 1 is that of plain descent with numeric slopes") {
  const Matrix<double> weights = random_weights(4, 1, 4);
  const LowRankFit fit =
      fit_low_rank(weights.view(), {.key_sizes = {1}, .restarts = 8, .progress = 1e-10});
  double least = 1e9;
  for (std::uint64_t start = 0; start < 8; ++start) {
    std::vector<double> x(8);
    RandomStream(9, "plain start", start).normal(0, x.size(), x.data());
    for (int step = 0; step < 20000; ++step) {
      std::array<double, 8> slope{};
      for (std::size_t i = 0; i < x.size(); ++i) {
        constexpr double kStep = 1e-5;
        const double here = x[i];
        x[i] = here + kStep;
        const double above = plain_kl(weights.view(), x);
        x[i] = here - kStep;
        const double below = plain_kl(weights.view(), x);
        x[i] = here;
        slope[i] = (above - below) / (2 * kStep);
      }
      for (std::size_t i = 0; i < x.size(); ++i) x[i] -= 0.3 * slope[i];
    }
    least = std::min(least, plain_kl(weights.view(), x));
  }
  CHECK(fit.rows[0].kl == doctest::Approx(least).epsilon(1e-6));
}

TEST_CASE("a fit is a function of its arguments") {
  const Matrix<double> weights = random_weights(8, 1, 1);
  const LowRankFit a = fit_low_rank(weights.view(), {.key_sizes = {2, 4}});
  const LowRankFit b = fit_low_rank(weights.view(), {.key_sizes = {4}});
  CHECK(a.rows[1].kl == b.rows[0].kl);
  CHECK(a.rows[1].iterations == b.rows[0].iterations);
  CHECK(a.rows[1].iterations > 0);
  // One row of two keys: any key size will do.
  Matrix<double> row(1, 2);
  row.view().at(0, 0) = 0.25;
  row.view().at(0, 1) = 0.75;
  const LowRankFit two = fit_low_rank(row.view(), {.key_sizes = {1}});
  CHECK(two.rank == 1);
  CHECK(two.rows[0].kl < 1e-11);
  // Fewer iterations than it takes are reported.
  const LowRankFit cut = fit_low_rank(weights.view(), {.key_sizes = {4}, .most_iterations = 3});
  CHECK_FALSE(cut.rows[0].settled);
  CHECK(cut.rows[0].iterations == 3);
}

}  // namespace
}  // namespace masque::test
