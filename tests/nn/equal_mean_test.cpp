// Equal-mean random positions: stretched by a factor of mean 1, the same for the whole sequence.
#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "nn/position_layer.hpp"

namespace masque::test {
namespace {

/// What positions 1 and `tokens` − 1 are stretched by: of a head of 4 features with base 1e12 the
/// second pair turns by 1e-6 a position.
std::pair<double, double> stretches(const std::string& arguments, Index tokens,
                                    std::optional<std::uint64_t> draw) {
  Layer layer("equal_mean(base=1e12" + arguments + ")", tokens);
  layer.shape = {8, 1, 4, 8, 8};
  layer.draw = draw;
  const LayerInput<double> none;
  const LayerProblem<double> problem(layer, none);
  const auto terms = layer.scheme->terms(problem.problem);
  Matrix<double> query = Matrix<double>::zero(tokens, 4), key = Matrix<double>::zero(tokens, 4);
  for (Index i = 0; i < tokens; ++i) query.view().at(i, 2) = key.view().at(i, 2) = 1;
  terms->query_key(query.view(), key.view());
  CHECK(std::ranges::equal(query.span(), key.span()));
  const auto stretch = [&](Index i) {
    return std::atan2(query.view().at(i, 3), query.view().at(i, 2)) / 1e-6 / static_cast<double>(i);
  };
  return {stretch(1), stretch(tokens - 1)};
}

/// The largest distance between how many of the draws are below x and what `below` says.
template <class Below>
double distribution_error(const std::string& arguments, const Below& below) {
  constexpr int kDraws = 4000;
  std::vector<double> all;
  double sum = 0;
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const auto [first, last] = stretches(arguments, 5, draw);
    CHECK(std::abs(first - last) < 1e-6 * (1 + last));
    all.push_back(first);
    sum += first;
  }
  // Deviations of one draw are at most 1.
  CHECK(std::abs(sum / kDraws - 1) < 5 / std::sqrt(kDraws));
  std::sort(all.begin(), all.end());
  double worst = 0;
  for (int i = 0; i < kDraws; ++i)
    worst = std::max(worst, std::abs(below(all[static_cast<std::size_t>(i)]) - (i + 0.5) / kDraws));
  return worst;
}

TEST_CASE("equal_mean: factors of mean 1, exponential or Beta on the length") {
  // Kolmogorov's bound: 1.95 / sqrt(4000) is passed once in a thousand.
  CHECK(distribution_error("", [](double x) { return 1 - std::exp(-x); }) < 0.031);
  // N = 5, L = 20: n/N = 4 Beta(1, 3).
  CHECK(distribution_error(",length=20", [](double x) { return 1 - std::pow(1 - x / 4, 3); }) <
        0.031);
  for (std::uint64_t draw = 0; draw < 500; ++draw)
    CHECK(stretches(",length=20", 5, draw).first <= 4);
}

TEST_CASE("equal_mean: without a draw, and for what is no shorter than the length, as it is") {
  CHECK(stretches("", 5, {}).first == doctest::Approx(1));
  CHECK(stretches(",length=5", 5, 3).first == doctest::Approx(1));
  CHECK(stretches(",length=6", 5, 3).first != doctest::Approx(1));
  CHECK(stretches("", 5, 3) == stretches("", 5, 3));
  CHECK(stretches("", 5, 3) != stretches(",seed=1", 5, 3));
}

}  // namespace
}  // namespace masque::test
