// Position schemes with trained tables against other terms and formulas.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "nn/position/buckets.hpp"
#include "nn/position_scored.hpp"

namespace masque::test {
namespace {

/// What the scheme adds to q·k of its scale, against term(head, i, j, q, k) of the same q and k.
template <class Make>
void check_against(const Layer& layer, const Make& make) {
  const Scored found = score(layer);
  const auto term = make(found);
  for (Index h = 0; h < 2; ++h) {
    const auto q = head_part<const double>(found.saved.query.view(), h, 2);
    const auto k = head_part<const double>(found.saved.key.view(), h, 2);
    Matrix<double> expected = Matrix<double>::zero(layer.tokens(), layer.tokens());
    for (Index i = 0; i < layer.tokens(); ++i) {
      for (Index j = 0; j < layer.tokens(); ++j) {
        expected.view().at(i, j) = layer.scheme->scale(layer.shape) * found.product(h, i, j) +
                                   term(h, i, j, q.row_span(i), k.row_span(j));
      }
    }
    CHECK(distance(found.saved.scores[static_cast<std::size_t>(h)], expected) < 1e-12);
  }
}

/// (x + added) · row of a table, columns of a head; `added` may be empty.
double product(std::span<const double> x, const double* added, const Matrix<double>& table,
               Index row, Index head) {
  const auto size = static_cast<Index>(x.size());
  double sum = 0;
  for (Index d = 0; d < size; ++d) {
    const double v = added != nullptr ? added[head * size + d] : 0;
    sum += (x[static_cast<std::size_t>(d)] + v) * table.view().at(row, head * size + d);
  }
  return sum;
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

TEST_CASE("deberta: queries and keys with projected rows of the bucket") {
  for (const char* text :
       {"deberta(span=4)", "deberta(span=8,position_buckets=8,max_relative_positions=12)"}) {
    CAPTURE(text);
    const Layer layer(text, 20);
    check_against(layer, [](const Scored& found) {
      const auto& p = found.in.parameters;
      const Index span = p[0].rows() / 2;
      return [key = times(p[0], p[1]), query = times(p[0], p[2]), span](
                 Index h, Index i, Index j, std::span<const double> q, std::span<const double> k) {
        const Index bucket = span == 8 ? nn::disentangled_bucket(i - j, 8, 12) : i - j;
        const Index row = std::clamp<Index>(bucket + span, 0, 2 * span - 1);
        return (product(q, nullptr, key, row, h) + product(k, nullptr, query, row, h)) /
               std::sqrt(12.0);
      };
    });
  }
}

TEST_CASE("transformer_xl and xlnet: content, distance and segments") {
  for (const bool segments : {false, true}) {
    Layer layer(segments ? "xlnet" : "transformer_xl");
    if (segments) layer.segments = {0, 0, 1, 1, 1, 0, 2};
    check_against(layer, [&](const Scored& found) {
      const auto& p = found.in.parameters;
      std::vector<double> distances;
      for (Index r = 0; r < 13; ++r) distances.push_back(number(6 - r));
      Matrix<double> waves(13, 8);
      nn::sinusoidal_table<double>(distances, false, waves.view());
      return [&layer, &p, segments, relative = times(waves, p[0])](
                 Index h, Index i, Index j, std::span<const double> q, std::span<const double> k) {
        double sum =
            product(k, nullptr, p[1], 0, h) + product(q, p[2].data(), relative, 6 - (i - j), h);
        if (segments) {
          const auto segment = [&](Index t) { return layer.segments[static_cast<std::size_t>(t)]; };
          sum += product(q, p[3].data(), p[4], segment(i) == segment(j) ? 0 : 1, h);
        }
        return 0.5 * sum;
      };
    });
  }
}

TEST_CASE("shaw: clipped distances with keys and values") {
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

TEST_CASE("tupe: positions with projections of their own, and a first token without any") {
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
  const Scored both = score(Layer("urpe(clip=3,scheme=t5)"));
  REQUIRE(both.in.parameters.size() == 2);
  check_scores(both, [&](Index h, Index i, Index j) {
    return both.product(h, i, j) +
           both.in.parameters[1].view().at(nn::t5_bucket(j - i, 32, 128, true), h);
  });
  for (Index i = 0; i < 7; ++i) {
    for (Index j = 0; j < 7; ++j) {
      CHECK(both.saved.weights[1].view().at(i, j) ==
            both.saved.soft[1].view().at(i, j) *
                both.in.parameters[0].view().at(std::clamp<Index>(i - j, -3, 3) + 3, 1));
    }
  }
  CHECK_THROWS_AS(nn::parse_position("urpe(scheme=urpe)"), UsageError);
  LayerInput<double> ones = smooth_input<double>(layer);
  ones.parameters = nn::start_position<double>(*layer.scheme, layer.shape, 1);
  const Layer none("none");
  CHECK(distance(layer_context(layer, ones), layer_context(none, smooth_input<double>(none))) == 0);
}

TEST_CASE("how many positions a table of 8 rows gives") {
  const auto count = [](const char* text) { return nn::parse_position(text)->position_count(8); };
  CHECK(count("learned") == 64);
  CHECK(count("learned(alpha=0)") == 8);
  CHECK(count("multiplicative(alpha=0.2)") == 64);
  CHECK(count("tupe(alpha=0)") == 8);
  CHECK(count("urpe(scheme=learned)") == 64);
  CHECK(count("randomized(scheme=learned,length=16)") == 256);
  for (const char* text : {"none", "rope", "alibi", "t5", "urpe(scheme=t5)", "randomized"}) {
    CAPTURE(text);
    CHECK(count(text) == 0);
  }
}

}  // namespace
}  // namespace masque::test
