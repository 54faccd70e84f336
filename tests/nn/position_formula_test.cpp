// Position schemes against the formulas of their papers.
#include <numbers>

#include <doctest/doctest.h>

#include "kernel/rotary.hpp"
#include "nn/position_layer.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

/// Scores of head h, and what went in.
struct Scored {
  LayerInput<double> in;
  LayerSaved<double> saved;
  Matrix<double> context;
  double at(Index h, Index i, Index j) const {
    return saved.scores[static_cast<std::size_t>(h)].view().at(i, j);
  }
  /// q_i·k_j of the queries and keys that meet.
  double product(Index h, Index i, Index j, Index size = 4) const {
    double sum = 0;
    for (Index d = h * size; d < (h + 1) * size; ++d) {
      sum += saved.query.view().at(i, d) * saved.key.view().at(j, d);
    }
    return sum;
  }
};

Scored score(const Layer& layer) {
  Scored out{smooth_input<double>(layer), {}, {}};
  out.context = layer_context(layer, out.in, &out.saved);
  return out;
}

double apart(const Scored& a, const Scored& b) {
  double most = 0;
  for (std::size_t h = 0; h < a.saved.scores.size(); ++h) {
    most = std::max(most, distance(a.saved.scores[h], b.saved.scores[h]));
  }
  return most;
}

double number(Index i) { return static_cast<double>(i); }

/// Compares scores with value(head, i, j).
template <class Value>
void check_scores(const Scored& found, Value&& value) {
  for (Index h = 0; h < std::ssize(found.saved.scores); ++h) {
    const Index n = found.saved.scores[0].rows();
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        CHECK(std::abs(found.at(h, i, j) - value(h, i, j)) < 1e-12);
      }
    }
  }
}

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
  for (Index& place : spaced.places) place *= 4;
  CHECK(apart(score(spaced), rope) < 1e-13);
  // Both pairs of a head of 4 turn less than once in 6 places: yarn interpolates them all.
  const Scored slow = score(Layer("rope_yarn(factor=8,length=6)"));
  const Scored divided = score(Layer("rope_pi(factor=8)"));
  const double grown = std::pow(1 + 0.1 * std::log(8.0), 2);
  check_scores(slow, [&](Index h, Index i, Index j) { return grown * divided.at(h, i, j); });
  // And more than beta_fast = 1 times in 700: it keeps them all.
  const Scored fast = score(Layer("rope_yarn(factor=8,length=700,beta_fast=1,beta_slow=0)"));
  check_scores(fast, [&](Index h, Index i, Index j) { return grown * rope.at(h, i, j); });
}

/// The angle by which place 1 turns pair t of a head of 8.
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
    const double turns = plain * 512 / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - 1) / 31, 0.0, 1.0);
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
  const std::vector<double> places = {0, 1, 2, 3, 4, 5, 6};
  Matrix<double> p(7, 6);
  nn::sinusoidal_table<double>(places, true, p.view());
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

/// What the scheme adds to q·k of its scale, against other terms of the same q and k.
template <class Make>
void check_against(const Layer& layer, const Make& make) {
  const Scored found = score(layer);
  const auto bias = make(found);
  for (Index h = 0; h < 2; ++h) {
    const auto q = head_part<const double>(found.saved.query.view(), h, 2);
    const auto k = head_part<const double>(found.saved.key.view(), h, 2);
    Matrix<double> expected = Matrix<double>::zero(layer.tokens(), layer.tokens());
    bias->head(h, q, k)->add({0, layer.tokens()}, {0, layer.tokens()}, expected.view());
    for (Index i = 0; i < layer.tokens(); ++i) {
      for (Index j = 0; j < layer.tokens(); ++j) {
        expected.view().at(i, j) += layer.scheme->scale(layer.shape) * found.product(h, i, j);
      }
    }
    CHECK(distance(found.saved.scores[static_cast<std::size_t>(h)], expected) < 1e-12);
  }
}

/// w · v for a projection of trained rows.
Matrix<double> times(const Matrix<double>& a, const Matrix<double>& b) {
  Matrix<double> out = Matrix<double>::zero(a.rows(), b.columns());
  for (Index i = 0; i < a.rows(); ++i) {
    for (Index e = 0; e < b.columns(); ++e) {
      for (Index d = 0; d < a.columns(); ++d) {
        out.view().at(i, e) += a.view().at(i, d) * b.view().at(d, e);
      }
    }
  }
  return out;
}

TEST_CASE("deberta: the terms that loadable models have") {
  for (const char* text :
       {"deberta(span=4)", "deberta(span=8,position_buckets=8,max_relative_positions=12)"}) {
    CAPTURE(text);
    Layer layer(text, 20);
    Matrix<double> key;
    Matrix<double> query;
    check_against(layer, [&](const Scored& found) {
      const auto& p = found.in.parameters;
      key = times(p[0], p[1]);
      query = times(p[0], p[2]);
      nn::DisentangledTerms<double> terms;
      terms.position_key = key.view();
      terms.position_query = query.view();
      terms.span = p[0].rows() / 2;
      if (terms.span == 8) terms.buckets = 8;
      terms.max_distance = 12;
      terms.scale = 1 / std::sqrt(12.0);
      return nn::disentangled_bias(terms, {layer.places, layer.places});
    });
  }
}

TEST_CASE("transformer_xl and xlnet: the terms that loadable models have") {
  for (const bool segments : {false, true}) {
    Layer layer(segments ? "xlnet" : "transformer_xl");
    if (segments) layer.segments = {0, 0, 1, 1, 1, 0, 2};
    Matrix<double> relative;
    Matrix<double> shifted;
    nn::XlnetTerms<double> terms;
    const Scored plain = score(layer);
    // The content bias belongs to the queries that the other terms leave alone.
    check_against(layer, [&](const Scored& found) {
      const auto& p = found.in.parameters;
      std::vector<double> distances;
      for (Index r = 0; r < 13; ++r) distances.push_back(number(6 - r));
      Matrix<double> waves(13, 8);
      nn::sinusoidal_table<double>(distances, false, waves.view());
      relative = times(waves, p[0]);
      terms.query = found.saved.query.view();
      terms.relative = relative.view();
      terms.first_distance = 6;
      terms.position_bias = p[2].view().row_span(0);
      terms.scale = 0.5;
      if (segments) {
        terms.segment_bias = p[3].view().row_span(0);
        terms.segment_table = p[4].view();
        terms.query_segments = terms.key_segments = layer.segments;
      }
      struct Sum final : nn::ScoreBias<double>, nn::HeadBias<double> {
        std::unique_ptr<nn::ScoreBias<double>> xlnet;
        mutable std::unique_ptr<nn::HeadBias<double>> part;
        mutable MatrixView<const double> key;
        mutable Index first = 0;
        std::span<const double> content;
        std::unique_ptr<nn::HeadBias<double>> head(Index h, MatrixView<const double> q,
                                                   MatrixView<const double> k) const override {
          auto made = std::make_unique<Sum>();
          made->part = xlnet->head(h, q, k);
          made->key = k;
          made->first = h * k.columns;
          made->content = content;
          return made;
        }
        void add(Range queries, Range keys, MatrixView<double> s) const override {
          part->add(queries, keys, s);
          for (Index i = 0; i < s.rows; ++i) {
            for (Index j = 0; j < s.columns; ++j) {
              for (Index d = 0; d < key.columns; ++d) {
                s.at(i, j) += 0.5 * content[static_cast<std::size_t>(first + d)] * key.at(j, d);
              }
            }
          }
        }
      };
      auto sum = std::make_unique<Sum>();
      sum->xlnet = nn::xlnet_bias(terms, {layer.places, layer.places});
      sum->content = p[1].view().row_span(0);
      return sum;
    });
  }
}

TEST_CASE("shaw: clipped distances beside keys and values") {
  const Layer layer("shaw(clip=2)");
  const Scored found = score(layer);
  const auto row = [](Index i, Index j) { return std::clamp<Index>(i - j, -2, 2) + 2; };
  check_scores(found, [&](Index h, Index i, Index j) {
    double sum = 0;
    for (Index d = 0; d < 4; ++d) {
      sum += found.saved.query.view().at(i, 4 * h + d) *
             (found.saved.key.view().at(j, 4 * h + d) +
              found.in.parameters[0].view().at(row(i, j), d));
    }
    return sum / 2;
  });
  for (Index i = 0; i < 7; ++i) {
    for (Index c = 0; c < 6; ++c) {
      double sum = 0;
      for (Index j = 0; j < 7; ++j) {
        sum += found.saved.weights[static_cast<std::size_t>(c / 3)].view().at(i, j) *
               (found.saved.value.view().at(j, c) +
                found.in.parameters[1].view().at(row(i, j), c % 3));
      }
      CHECK(std::abs(found.context.view().at(i, c) - sum) < 1e-12);
    }
  }
}

TEST_CASE("tupe: places with projections of their own, and a first token without any") {
  const Layer layer("tupe(relative=true,cls=true)", 4);
  const Scored found = score(layer);
  const auto& p = found.in.parameters;
  const Matrix<double> query = times(p[0], p[1]);
  const Matrix<double> key = times(p[0], p[2]);
  check_scores(found, [&](Index h, Index i, Index j) {
    const double content = found.product(h, i, j) / std::sqrt(8.0);
    if (i == 0) return content + p[4].view().at(0, h);
    if (j == 0) return content + p[4].view().at(1, h);
    double sum = 0;
    for (Index d = 4 * h; d < 4 * h + 4; ++d) sum += query.view().at(i, d) * key.view().at(j, d);
    return content + sum / std::sqrt(8.0) + p[3].view().at(nn::t5_bucket(j - i, 32, 128, true), h);
  });
}

TEST_CASE("urpe: weights times a number of the distance, and all ones change nothing") {
  const Layer layer("urpe(clip=3)");
  const Scored found = score(layer);
  for (Index h = 0; h < 2; ++h) {
    for (Index i = 0; i < 7; ++i) {
      for (Index j = 0; j < 7; ++j) {
        const Index row = std::clamp<Index>(i - j, -3, 3) + 3;
        const auto at = static_cast<std::size_t>(h);
        CHECK(found.saved.weights[at].view().at(i, j) ==
              found.saved.soft[at].view().at(i, j) * found.in.parameters[0].view().at(row, h));
      }
    }
  }
  LayerInput<double> ones = smooth_input<double>(layer);
  ones.parameters = nn::start_position<double>(*layer.scheme, layer.shape, 1);
  const Layer none("none");
  CHECK(distance(layer_context(layer, ones), layer_context(none, smooth_input<double>(none))) == 0);
}

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

  const Layer turns("complex_order");
  const LayerInput<double> frequencies = random_input<double>(turns);
  const Matrix<double> c = moved(turns, frequencies);
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

/// The places that a draw gives to consecutive tokens.
std::vector<Index> drawn_places(std::string_view text, Index tokens,
                                std::optional<std::uint64_t> draw) {
  Layer layer(text, tokens);
  layer.draw = draw;
  LayerInput<double> in = random_input<double>(layer);
  for (Index r = 0; r < in.parameters[0].rows(); ++r) in.parameters[0].view().at(r, 0) = number(r);
  const Matrix<double> x = moved(layer, in);
  std::vector<Index> places;
  for (Index i = 0; i < tokens; ++i) {
    places.push_back(static_cast<Index>(std::lround(x.view().at(i, 0) - 1)));
  }
  return places;
}

TEST_CASE("randomized: a sorted sample of distinct places for each draw, all places alike") {
  constexpr std::string_view kText = "randomized(length=20,seed=1,scheme=learned)";
  constexpr int kDraws = 4000;
  std::vector<int> times(20);
  for (std::uint64_t draw = 0; draw < kDraws; ++draw) {
    const std::vector<Index> places = drawn_places(kText, 5, draw);
    for (std::size_t i = 0; i < places.size(); ++i) {
      REQUIRE((places[i] >= 0 && places[i] < 20));
      if (i > 0) REQUIRE(places[i] > places[i - 1]);
      ++times[static_cast<std::size_t>(places[i])];
    }
  }
  // 1000 expected, with a deviation of √(4000 · ¼ · ¾) = 27.
  for (const int count : times) CHECK(std::abs(count - kDraws / 4) < 5 * 27);
  CHECK(drawn_places(kText, 5, 7) == drawn_places(kText, 5, 7));
  CHECK(drawn_places(kText, 5, 7) !=
        drawn_places("randomized(length=20,seed=2,scheme=learned)", 5, 7));
  CHECK(drawn_places(kText, 5, {}) == std::vector<Index>{0, 1, 2, 3, 4});
  CHECK(drawn_places("randomized(length=3,scheme=learned)", 4, 7) ==
        std::vector<Index>{0, 1, 2, 3});
}

}  // namespace
}  // namespace masque::test
