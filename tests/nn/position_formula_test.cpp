// Position schemes against the formulas of their papers.
#include <cmath>
#include <numbers>
#include <vector>

#include <doctest/doctest.h>

#include "kernel/rotary.hpp"
#include "nn/position/buckets.hpp"
#include "nn/position/score_terms.hpp"
#include "nn/position_scored.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

TEST_CASE("rope: scores are of the distance, lengths stay, in both layouts") {
  for (const std::string text : {"rope", "rope(layout=half)"}) {
    CAPTURE(text);
    const bool half = text != "rope";
    const Scored plain = score(Layer("none"));
    const Scored found = score(Layer(text));
    check_scores(found, [&](Index h, Index i, Index j) {
      double sum = 0;
      for (Index t = 0; t < 2; ++t) {
        const Index a = 4 * h + (half ? t : 2 * t);
        const Index b = a + (half ? 2 : 1);
        const Complex q(plain.saved.query.view().at(i, a), plain.saved.query.view().at(i, b));
        const Complex k(plain.saved.key.view().at(j, a), plain.saved.key.view().at(j, b));
        const double angle = number(i - j) * std::pow(10000.0, -number(t) / 2);
        sum += (q * std::conj(k) * std::polar(1.0, angle)).real();
      }
      return sum / 2;
    });
    for (Index i = 0; i < 7; ++i) {
      double before = 0;
      double after = 0;
      for (Index d = 0; d < 8; ++d) {
        before += std::pow(plain.saved.query.view().at(i, d), 2);
        after += std::pow(found.saved.query.view().at(i, d), 2);
      }
      CHECK(after == doctest::Approx(before).epsilon(1e-14));
    }
  }
}

TEST_CASE("rope for longer texts: factor 1 is rope, and the frequencies that formulas give") {
  const Scored rope = score(Layer("rope"));
  for (const char* text : {"rope_pi(factor=1)", "rope_ntk(factor=1)", "rope_ntk_mixed(factor=1)",
                           "rope_yarn(factor=1,length=16)"}) {
    CAPTURE(text);
    CHECK(apart(score(Layer(text)), rope) == 0);
  }
  // κ = 8^(d / (d − 2)) = 64 for d = 4.
  CHECK(apart(score(Layer("rope_ntk(factor=8)")), score(Layer("rope(base=640000)"))) < 1e-13);
  Layer spaced("rope_pi(factor=4)");
  for (Index& position : spaced.positions) position *= 4;
  CHECK(apart(score(spaced), rope) < 1e-13);
  // Both pairs of a head of 4 rotate less than once in 6 positions: yarn interpolates them all.
  const Scored slow = score(Layer("rope_yarn(factor=8,length=6)"));
  const Scored divided = score(Layer("rope_pi(factor=8)"));
  const double grown = std::pow(1 + 0.1 * std::log(8.0), 2);
  check_scores(slow, [&](Index h, Index i, Index j) { return grown * divided.at(h, i, j); });
  // And more than beta_fast = 1 times in 700: it keeps them all.
  const Scored fast = score(Layer("rope_yarn(factor=8,length=700,beta_fast=1,beta_slow=0)"));
  check_scores(fast, [&](Index h, Index i, Index j) { return grown * rope.at(h, i, j); });
}

/// The angle by which position 1 rotates pair t of a head of 8.
double angle_of(std::string_view text, Index t) {
  Layer layer(text, 2);
  layer.shape.head_size = 8;
  LayerProblem<double> problem(layer, random_input<double>(layer));
  Matrix<double> x = Matrix<double>::zero(2, 16);
  for (Index p = 0; p < 8; ++p) x.view().at(1, 2 * p) = 1;
  Matrix<double> key = Matrix<double>::zero(2, 16);
  layer.scheme->terms(problem.problem)->query_key(x.view(), key.view());
  return std::atan2(x.view().at(1, 2 * t + 1), x.view().at(1, 2 * t));
}

TEST_CASE("frequencies of rope_ntk_mixed and rope_yarn") {
  for (Index t = 0; t < 4; ++t) {
    CAPTURE(t);
    const double plain = std::pow(10.0, -number(t));
    const double divisor = std::exp(std::log(8.0) * std::pow(number(t + 1) / 4, 0.625));
    CHECK(angle_of("rope_ntk_mixed", t) == doctest::Approx(plain / divisor).epsilon(1e-13));
    const double rotations = plain * 512 / (2 * std::numbers::pi);
    const double kept = std::clamp((rotations - 1) / 31, 0.0, 1.0);
    CHECK(angle_of("rope_yarn", t) ==
          doctest::Approx((kept + (1 - kept) / 8) * plain).epsilon(1e-13));
  }
  CHECK(angle_of("rope_ntk_mixed", 3) == doctest::Approx(0.001 / 8).epsilon(1e-13));
}

TEST_CASE("rerope: a window as long as the text is rope, a short one bends distances") {
  const Scored rope = score(Layer("rope"));
  CHECK(apart(score(Layer("rerope(window=7)")), rope) < 1e-13);
  CHECK(apart(score(Layer("leaky_rerope(window=7)")), rope) < 1e-13);
  CHECK(apart(score(Layer("leaky_rerope(window=2,factor=1)")), rope) < 1e-13);
  CHECK(apart(score(Layer("rerope(window=7,layout=half)")), score(Layer("rope(layout=half)"))) <
        1e-13);
  const Scored plain = score(Layer("none"));
  for (const double factor : {HUGE_VAL, 3.0}) {
    const Scored found =
        score(Layer(factor == 3 ? "leaky_rerope(window=2,factor=3)" : "rerope(window=2)"));
    check_scores(found, [&](Index h, Index i, Index j) {
      const double far = number(std::abs(i - j));
      const double bent = far < 2 ? far : 2 + (far - 2) / factor;
      double sum = 0;
      for (Index t = 0; t < 2; ++t) {
        const Index a = 4 * h + 2 * t;
        const Complex q(plain.saved.query.view().at(i, a), plain.saved.query.view().at(i, a + 1));
        const Complex k(plain.saved.key.view().at(j, a), plain.saved.key.view().at(j, a + 1));
        const double angle = (i < j ? -bent : bent) * std::pow(10000.0, -number(t) / 2);
        sum += (q * std::conj(k) * std::polar(1.0, angle)).real();
      }
      return sum / 2;
    });
  }
}

TEST_CASE("xpos: pairs grow by ξ^(distance / 512), with the constants of torchscale") {
  for (const Index n : {1, 7, 40}) {
    const Scored plain = score(Layer("none", n));
    const Scored found = score(Layer("xpos", n));
    check_scores(found, [&](Index h, Index i, Index j) {
      double sum = 0;
      for (Index t = 0; t < 2; ++t) {
        const Index a = 4 * h + 2 * t;
        const Complex q(plain.saved.query.view().at(i, a), plain.saved.query.view().at(i, a + 1));
        const Complex k(plain.saved.key.view().at(j, a), plain.saved.key.view().at(j, a + 1));
        const double xi = (2 * number(t) + 0.4 * 4) / (1.4 * 4);
        const double angle = number(i - j) * std::pow(10000.0, -number(t) / 2);
        sum += (q * std::conj(k) * std::polar(std::pow(xi, number(i - j) / 512), angle)).real();
      }
      return sum / 2;
    });
  }
}

TEST_CASE("alibi and t5: what they add is theirs, and the scale of scores") {
  Layer alibi("alibi");
  alibi.shape.num_attention_heads = 8;
  const Scored plain = score(alibi);
  check_scores(plain, [&](Index h, Index i, Index j) {
    return plain.product(h, i, j) / 2 - std::exp2(-number(h + 1)) * number(std::abs(i - j));
  });
  for (const bool bidirectional : {true, false}) {
    const Scored found = score(Layer(bidirectional ? "t5" : "t5(bidirectional=false)", 40));
    check_scores(found, [&](Index h, Index i, Index j) {
      const Index bucket = nn::t5_bucket(j - i, 32, 128, bidirectional);
      return found.product(h, i, j) + found.in.parameters[0].view().at(bucket, h);
    });
  }
}

TEST_CASE("repeated blocks: keys of the first block count more often, for queries in between") {
  // Blocks 0-2, 3-5, 6-8 and 9; a query of the first, two in between, one of the last.
  const std::vector<Index> keys{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  const std::vector<Index> queries{2, 3, 8, 9};
  const auto terms = nn::repeated_block_terms<double>(3, 4, {queries, keys});
  const auto head = terms->bias()->head(0, {}, {});
  Matrix<double> scores = Matrix<double>::zero(4, 10);
  head->add({0, 4}, {0, 10}, scores.view());
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 10; ++j)
      CHECK(scores.view().at(i, j) == ((i == 1 || i == 2) && j < 3 ? std::log(5.0) : 0));
  }
  Matrix<double> part = Matrix<double>::zero(2, 3);
  head->add({2, 4}, {2, 5}, part.view());
  for (Index i = 0; i < 2; ++i) {
    for (Index j = 0; j < 3; ++j)
      CHECK(part.view().at(i, j) == (i == 0 && j == 0 ? std::log(5.0) : 0));
  }
  CHECK(terms->bias_gradient() == nullptr);
}

TEST_CASE("kerple and sandwich: their kernels of the distance") {
  const Scored power = score(Layer("kerple_power"));
  const Scored logarithm = score(Layer("kerple_log"));
  check_scores(power, [&](Index h, Index i, Index j) {
    const auto& r = power.in.parameters;
    return power.product(h, i, j) / 2 -
           r[0].view().at(0, h) * std::pow(number(std::abs(i - j)), r[1].view().at(0, h));
  });
  check_scores(logarithm, [&](Index h, Index i, Index j) {
    const auto& r = logarithm.in.parameters;
    return logarithm.product(h, i, j) / 2 -
           r[0].view().at(0, h) * std::log1p(r[1].view().at(0, h) * number(std::abs(i - j)));
  });
  const Scored sandwich = score(Layer("sandwich(size=6)"));
  const std::vector<double> positions = {0, 1, 2, 3, 4, 5, 6};
  Matrix<double> p(7, 6);
  nn::sinusoidal_table<double>(positions, true, p.view());
  check_scores(sandwich, [&](Index h, Index i, Index j) {
    double sum = 0;
    for (Index d = 0; d < 6; ++d) sum += p.view().at(i, d) * p.view().at(j, d);
    return sandwich.product(h, i, j) / 2 + sum * 2 / (8 * number(h + 1));
  });
}

TEST_CASE("kerple: numbers that are not positive count as 0.01, and do not move") {
  for (const char* text : {"kerple_power", "kerple_log"}) {
    const Layer layer(text);
    LayerInput<double> in = smooth_input<double>(layer);
    in.parameters[0].data()[1] = -3;
    in.parameters[1].data()[0] = 0.005;
    const LayerInput<double> d = layer_gradients(layer, in, random_matrix<double>(7, 6, 9));
    CHECK(d.parameters[0].data()[0] != 0);
    CHECK(d.parameters[0].data()[1] == 0);
    CHECK(d.parameters[1].data()[0] == 0);
    LayerInput<double> least = smooth_input<double>(layer);
    least.parameters[0].data()[1] = 0.01;
    least.parameters[1].data()[0] = 0.01;
    CHECK(distance(layer_context(layer, in), layer_context(layer, least)) == 0);
  }
}

}  // namespace
}  // namespace masque::test
