// What position schemes do to the input against their formulas.
#include <doctest/doctest.h>

#include "nn/position_scored.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

/// x' of tokens that are all 1.
Matrix<double> moved(const Layer& layer, const LayerInput<double>& in) {
  const LayerProblem<double> problem(layer, in);
  Matrix<double> x(layer.tokens(), layer.shape.hidden_size);
  std::fill(x.span().begin(), x.span().end(), 1.0);
  layer.scheme->terms(problem.problem)->input(x.view());
  return x;
}

TEST_CASE("learned and multiplicative: the hierarchical extension, then the last place") {
  for (const std::string text : {"learned(alpha=0.3)", "multiplicative(alpha=0.3)",
                                 "multiplicative(form=plain,alpha=0.3)"}) {
    CAPTURE(text);
    const Layer layer(text, 20);
    const LayerInput<double> in = random_input<double>(layer);
    const auto p = in.parameters[0].view();
    const Matrix<double> x = moved(layer, in);
    const double one = text.find("plain") == std::string::npos ? 1 : 0;
    const auto u = [&](Index k, Index d) { return (p.at(k, d) - 0.3 * p.at(0, d)) / 0.7; };
    for (Index k = 0; k < 20; ++k) {
      const Index capped = std::min<Index>(k, 15);
      for (Index d = 0; d < 8; ++d) {
        const double expected = 0.3 * u(capped / 4, d) + 0.7 * u(capped % 4, d);
        CHECK(x.view().at(k, d) == doctest::Approx(one + expected).epsilon(1e-13));
        if (k < 4) CHECK(x.view().at(k, d) == doctest::Approx(one + p.at(k, d)).epsilon(1e-15));
      }
    }
  }
  const Layer clipped("learned(alpha=0)", 9);
  const LayerInput<double> in = random_input<double>(clipped);
  const Matrix<double> x = moved(clipped, in);
  CHECK(x.view().at(8, 3) == 1 + in.parameters[0].view().at(3, 3));
}

TEST_CASE("sinusoidal, recursive, complex_order and convolutional: their formulas") {
  const Layer waves("sinusoidal");
  const Matrix<double> s = moved(waves, random_input<double>(waves));
  CHECK(s.view().at(3, 2) == 1 + std::sin(3 * std::pow(10000.0, -2.0 / 8)));
  CHECK(s.view().at(3, 3) == 1 + std::cos(3 * std::pow(10000.0, -2.0 / 8)));

  const Layer steps("recursive(step=0.5)");
  const LayerInput<double> in = random_input<double>(steps);
  const Matrix<double> r = moved(steps, in);
  for (Index k = 0; k < 6; ++k) {
    for (Index e = 0; e < 8; ++e) {
      double sum = in.parameters[2].view().at(0, e);
      for (Index d = 0; d < 8; ++d) {
        sum += (r.view().at(k, d) - 1) * in.parameters[1].view().at(d, e);
      }
      CHECK(r.view().at(k + 1, e) ==
            doctest::Approx(r.view().at(k, e) + 0.5 * std::tanh(sum)).epsilon(1e-13));
    }
  }
  CHECK(r.view().at(0, 5) == doctest::Approx(1 + in.parameters[0].view().at(0, 5)));

  const Layer layer("complex_order");
  const LayerInput<double> frequencies = random_input<double>(layer);
  const Matrix<double> c = moved(layer, frequencies);
  for (Index k = 0; k < 7; ++k) {
    for (Index t = 0; t < 4; ++t) {
      const double angle = number(k) * frequencies.parameters[0].view().at(0, t);
      const Complex expected = Complex(1, 1) * std::polar(1.0, angle);
      CHECK(c.view().at(k, 2 * t) == doctest::Approx(expected.real()).epsilon(1e-13));
      CHECK(c.view().at(k, 2 * t + 1) == doctest::Approx(expected.imag()).epsilon(1e-13));
    }
  }

  const Layer filter("convolutional", 3);
  const LayerInput<double> taps = random_input<double>(filter);
  const Matrix<double> v = moved(filter, taps);
  const auto f = taps.parameters[0].view();
  const double plain = 1 + taps.parameters[1].view().at(0, 2);
  CHECK(v.view().at(0, 2) == doctest::Approx(plain + f.at(1, 2) + f.at(2, 2)));
  CHECK(v.view().at(1, 2) == doctest::Approx(plain + f.at(0, 2) + f.at(1, 2) + f.at(2, 2)));
  CHECK(v.view().at(2, 2) == doctest::Approx(plain + f.at(0, 2) + f.at(1, 2)));
}

/// The largest error of floater where dp/dt = tanh(p) in each column, whose solution is
/// sinh p(t) = sinh p(0) e^t, or where dp/dt = tanh(t): p(t) = p(0) + log cosh t.
double floater_error(std::string_view text, bool by_time) {
  const Layer layer(text);
  LayerInput<double> in = random_input<double>(layer);
  for (std::size_t k = 1; k < in.parameters.size(); ++k) {
    for (double& x : in.parameters[k].span()) x = 0;
  }
  for (Index d = 0; d < 8; ++d) {
    in.parameters[4].view().at(d, d) = 1;
    if (by_time) {
      in.parameters[2].view().at(0, d) = 1;
    } else {
      in.parameters[1].view().at(d, d) = 1;
    }
  }
  const Matrix<double> x = moved(layer, in);
  double worst = 0;
  for (Index i = 0; i < 7; ++i) {
    const double t = 0.5 * number(i);
    for (Index d = 0; d < 8; ++d) {
      const double first = in.parameters[0].view().at(0, d);
      const double expected =
          by_time ? first + std::log(std::cosh(t)) : std::asinh(std::sinh(first) * std::exp(t));
      worst = std::max(worst, std::abs(x.view().at(i, d) - 1 - expected));
    }
  }
  return worst;
}

TEST_CASE("floater solves its equation to fourth order") {
  for (const bool by_time : {false, true}) {
    CAPTURE(by_time);
    const double coarse = floater_error("floater(step=0.5)", by_time);
    const double fine = floater_error("floater(step=0.5,substeps=4)", by_time);
    CHECK(coarse < 1e-3);
    CHECK(fine < 5e-6);
    // Four times as many steps: 4^4 = 256 in the limit.
    CHECK(coarse / fine > 150);
    CHECK(coarse / fine < 400);
  }
}

/// The positions that a draw gives to consecutive tokens.
std::vector<Index> drawn_positions(std::string_view text, Index tokens,
                                   std::optional<std::uint64_t> draw) {
  Layer layer(text, tokens);
  layer.draw = draw;
  LayerInput<double> in = random_input<double>(layer);
  for (Index r = 0; r < in.parameters[0].rows(); ++r) in.parameters[0].view().at(r, 0) = number(r);
  const Matrix<double> x = moved(layer, in);
  std::vector<Index> positions;
  for (Index i = 0; i < tokens; ++i) {
    positions.push_back(static_cast<Index>(std::lround(x.view().at(i, 0) - 1)));
  }
  return positions;
}

TEST_CASE("randomized: a sorted sample of distinct positions for each draw, all positions alike") {
  constexpr std::string_view kText = "randomized(length=20,seed=1,scheme=learned)";
  constexpr int kDraws = 4000;
  std::vector<int> times(20);
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const std::vector<Index> positions = drawn_positions(kText, 5, draw);
    for (std::size_t i = 0; i < positions.size(); ++i) {
      REQUIRE((positions[i] >= 0 && positions[i] < 20));
      if (i > 0) REQUIRE(positions[i] > positions[i - 1]);
      ++times[static_cast<std::size_t>(positions[i])];
    }
  }
  // 1000 expected, with a deviation of √(4000 · ¼ · ¾) = 27.
  for (const int count : times) CHECK(std::abs(count - kDraws / 4) < 5 * 27);
  CHECK(drawn_positions(kText, 5, 7) == drawn_positions(kText, 5, 7));
  CHECK(drawn_positions(kText, 5, 7) !=
        drawn_positions("randomized(length=20,seed=2,scheme=learned)", 5, 7));
  CHECK(drawn_positions(kText, 5, {}) == std::vector<Index>{0, 1, 2, 3, 4});
  CHECK(drawn_positions("randomized(length=3,scheme=learned)", 4, 7) ==
        std::vector<Index>{0, 1, 2, 3});
}

}  // namespace
}  // namespace masque::test
