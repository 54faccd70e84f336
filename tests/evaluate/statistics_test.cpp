// Correlation, whitening, sums that add up.
#include <cmath>
#include <utility>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/random/random.hpp"
#include "evaluate/score/perplexity.hpp"
#include "evaluate/states/whitening.hpp"
#include "evaluate/statistics/correlation.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {
namespace {

TEST_CASE("ranks of equal values are shared, correlations as scipy's") {
  CHECK(ranks(std::vector<double>{3, 1, 3, 2, 3}) == std::vector<double>{4, 1, 4, 2, 4});
  const std::vector<double> x{1, 2, 2, 4, 5, 0.5};
  const std::vector<double> y{2, 1, 3, 3, 9, 3};
  // scipy.stats 1.17: pearsonr(x, y), spearmanr(x, y)
  CHECK(pearson(x, y) == doctest::Approx(0.7242007966213144).epsilon(1e-12));
  CHECK(spearman(x, y) == doctest::Approx(0.4928328829069579).epsilon(1e-12));
  CHECK(spearman(std::vector<double>{1, 2, 3}, std::vector<double>{1, 10, 1000}) == 1);
  CHECK(std::isnan(pearson(std::vector<double>{1, 1}, std::vector<double>{1, 2})));
  CHECK(std::isnan(pearson({}, {})));
}

TEST_CASE("whitened vectors have mean 0 and covariance 1") {
  constexpr Index kCount = 40;
  constexpr Index kSize = 5;
  Matrix<double> x(kCount, kSize);
  RandomStream(7, "whitening").normal(0, kCount * kSize, x.data());
  for (Index i = 0; i < kCount; ++i) {
    for (Index j = 1; j < kSize; ++j) x.view().at(i, j) += 3 + 2 * x.view().at(i, j - 1);
  }
  for (const Index kept : {Index{5}, Index{2}}) {
    const Whitening w = fit_whitening(std::as_const(x).view(), kept);
    std::vector<std::vector<double>> out;
    for (Index i = 0; i < kCount; ++i) out.push_back(w.apply(x.view().row_span(i)));
    for (Index a = 0; a < kept; ++a) {
      for (Index b = 0; b < kept; ++b) {
        double mean = 0;
        double product = 0;
        for (const auto& v : out) {
          mean += v[static_cast<std::size_t>(a)];
          product += v[static_cast<std::size_t>(a)] * v[static_cast<std::size_t>(b)];
        }
        CHECK(std::abs(mean) < 1e-10);
        CHECK(product / (kCount - 1) == doctest::Approx(a == b ? 1 : 0).epsilon(1e-9));
      }
    }
  }
  CHECK_THROWS_AS(fit_whitening(std::as_const(x).view().middle_rows(0, 4), 5), InputError);
  CHECK_NOTHROW(fit_whitening(std::as_const(x).view().middle_rows(0, 4), 3));
  CHECK_THROWS_AS(fit_whitening(std::as_const(x).view().middle_rows(0, 1), 1), InputError);
}

TEST_CASE("moments of parts add up to those of the whole") {
  const std::vector<double> values{1, 4, -2, 7.5, 0, 3};
  Moments all;
  for (const double v : values) all.add(v);
  CHECK(all.sum() == doctest::Approx(13.5));
  CHECK(all.sum_squares == doctest::Approx(55.875).epsilon(1e-12));
  for (std::size_t cut = 0; cut <= values.size(); ++cut) {
    Moments parts[2];
    for (std::size_t i = 0; i < values.size(); ++i) parts[i < cut ? 0 : 1].add(values[i]);
    Moments sum;
    sum.add(parts[0]);
    sum.add(parts[1]);
    CHECK(sum.n == all.n);
    CHECK(sum.mean == doctest::Approx(all.mean).epsilon(1e-14));
    CHECK(sum.sum_squares == doctest::Approx(all.sum_squares).epsilon(1e-13));
  }
}

TEST_CASE("tokens share the bytes of their text, and only those of scored ones count") {
  ScoredSentence s;
  s.sentence.prefix = 1;
  s.sentence.suffix = 1;
  // " ab cde\xC3\xA9 ": two pieces of the last character.
  s.sentence.ids.resize(6);
  s.sentence.spans = {{0, 0}, {1, 3}, {4, 7}, {7, 9}, {7, 9}, {0, 0}};
  s.sentence.text_bytes = 10;
  const auto bytes = [&](std::vector<std::optional<double>> values) {
    s.log_probabilities = std::move(values);
    return scored_bytes(s);
  };
  const std::optional<double> none;
  CHECK(bytes({-1, -1, -1, -1}) == 10);
  CHECK(bytes({-1, none, none, none}) == 3);
  CHECK(bytes({none, -1, none, none}) == 4);
  CHECK(bytes({none, none, -1, none}) == 2);
  CHECK(bytes({none, none, none, -1}) == 1);
  CHECK(bytes({none, -1, -1, -1}) == 7);
  CHECK(bytes({none, none, none, none}) == 0);
  CHECK(bytes({}) == 10);
}

}  // namespace
}  // namespace masque::evaluate
