// Position terms against their formulas, and the tables that everybody agrees on.
#include "nn/position/position.hpp"

#include <numeric>

#include <doctest/doctest.h>

#include "nn/attention/attention_evaluation.hpp"
#include "nn/example.hpp"
#include "nn/position/buckets.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::test {
namespace {

constexpr Index kHeads = 3;
constexpr Index kSize = 5;

struct Positions {
  std::vector<Index> queries;
  std::vector<Index> keys;
  nn::PositionIds positions() const { return {queries, keys}; }
};

std::vector<Index> run_of(Index first, Index count, Index step = 1) {
  std::vector<Index> out;
  for (Index i = 0; i < count; ++i) out.push_back(first + i * step);
  return out;
}

/// Consecutive, shifted, with gaps, in any order, and far apart.
std::vector<Positions> all_positions() {
  return {{run_of(0, 40), run_of(0, 40)},
          {run_of(20, 3), run_of(0, 70)},
          {run_of(0, 9), run_of(0, 20, 3)},
          {{7, 3, 3, 11}, {0, 5, 2, 2, 30}},
          {{0, 100}, {300, 0, 41}}};
}

/// What `bias` adds, tile by tile.
template <class T>
Matrix<T> added(const nn::ScoreBias<T>& bias, Index head, const Positions& at,
                MatrixView<const T> query, MatrixView<const T> key) {
  const auto terms = bias.head(head, query, key);
  const Index queries = static_cast<Index>(at.queries.size());
  const Index keys = static_cast<Index>(at.keys.size());
  Matrix<T> out = Matrix<T>::zero(queries, keys);
  for (Index i = 0; i < queries; i += 7) {
    for (Index j = 0; j < keys; j += 16) {
      const mask::Range rows{i, std::min(i + 7, queries)};
      const mask::Range columns{j, std::min(j + 16, keys)};
      terms->add(rows, columns,
                 out.view().middle_rows(i, rows.size()).middle_columns(j, columns.size()));
    }
  }
  return out;
}

/// Compares with value(head, i, j).
template <class T, class Value>
void check_terms(const nn::ScoreBias<T>& bias, const Positions& at, MatrixView<const T> query,
                 MatrixView<const T> key, Value&& value) {
  const double most = std::is_same_v<T, float> ? 2e-5 : 1e-13;
  for (Index head = 0; head < kHeads; ++head) {
    CAPTURE(head);
    const auto columns = [&](const MatrixView<const T>& x) {
      return x.data == nullptr ? x : x.middle_columns(head * kSize, kSize);
    };
    const Matrix<T> found = added(bias, head, at, columns(query), columns(key));
    for (Index i = 0; i < found.rows(); ++i) {
      for (Index j = 0; j < found.columns(); ++j) {
        CHECK(std::abs(static_cast<double>(found.view().at(i, j)) - value(head, i, j)) <= most);
      }
    }
  }
}

Index at(const std::vector<Index>& x, Index i) { return x[static_cast<std::size_t>(i)]; }

/// Σ_d x(i, head · size + d) · y(r, head · size + d).
template <class T>
double dot(const Matrix<T>& x, Index i, const Matrix<T>& y, Index r, Index head) {
  double sum = 0;
  for (Index d = head * kSize; d < (head + 1) * kSize; ++d) {
    sum += static_cast<double>(x.view().at(i, d)) * static_cast<double>(y.view().at(r, d));
  }
  return sum;
}

/// Expects that [from, to] have a bucket; the table of the notes.
void check_buckets(Index from, Index to, Index bucket, bool bidirectional) {
  for (Index distance = from; distance <= to; ++distance) {
    CAPTURE(distance);
    CHECK(nn::t5_bucket(-distance, 32, 128, bidirectional) == bucket);
    if (distance > 0) {
      CHECK(nn::t5_bucket(distance, 32, 128, bidirectional) == (bidirectional ? bucket + 16 : 0));
    }
  }
}

TEST_CASE("buckets of T5, both ways") {
  for (Index distance = 0; distance < 8; ++distance)
    check_buckets(distance, distance, distance, true);
  check_buckets(8, 11, 8, true);
  check_buckets(12, 15, 9, true);
  check_buckets(16, 22, 10, true);
  check_buckets(23, 31, 11, true);
  check_buckets(32, 45, 12, true);
  check_buckets(46, 63, 13, true);
  check_buckets(64, 90, 14, true);
  check_buckets(91, 3000, 15, true);
  for (Index distance = 0; distance < 16; ++distance)
    check_buckets(distance, distance, distance, false);
  check_buckets(16, 16, 16, false);
  check_buckets(20, 20, 17, false);
  check_buckets(32, 32, 21, false);
  check_buckets(64, 64, 26, false);
  check_buckets(113, 3000, 31, false);
  CHECK(nn::t5_bucket(-112, 32, 128, false) == 30);
}

TEST_CASE("buckets of DeBERTa: exact, then logarithmic, odd") {
  // transformers 5.23, make_log_bucket_position(·, 8, 32) at 0 … 40.
  const std::vector<Index> eight = {0, 1, 2, 3, 4, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7,
                                    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8};
  for (Index d = 0; d <= 40; ++d) {
    CAPTURE(d);
    CHECK(nn::disentangled_bucket(d, 8, 32) == at(eight, d));
    CHECK(nn::disentangled_bucket(-d, 8, 32) == -at(eight, d));
  }
  CHECK(nn::disentangled_bucket(128, 256, 512) == 128);
  CHECK(nn::disentangled_bucket(511, 256, 512) == 255);
  CHECK(nn::disentangled_bucket(777, -1, 512) == 777);
}

TEST_CASE_TEMPLATE("T5: a table entry of the bucket", T, float, double) {
  for (const Positions& p : all_positions()) {
    const Matrix<T> table = random_matrix<T>(32, kHeads, 4);
    for (const bool bidirectional : {false, true}) {
      const auto made = nn::t5_terms<T>(table.view(), {}, 128, bidirectional, p.positions());
      check_terms<T>(*made->bias(), p, {}, {}, [&](Index head, Index i, Index j) {
        const Index bucket =
            nn::t5_bucket(at(p.keys, j) - at(p.queries, i), 32, 128, bidirectional);
        return static_cast<double>(table.view().at(bucket, head));
      });
    }
  }
}

TEST_CASE("slopes of ALiBi") {
  CHECK(nn::alibi_slopes(1) == std::vector<double>{1.0 / 256});
  CHECK(nn::alibi_slopes(4) == std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625});
  CHECK(nn::alibi_slopes(6) == std::vector<double>{0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125});
  const std::vector<double> eight = nn::alibi_slopes(8);
  for (int h = 0; h < 8; ++h) CHECK(eight[static_cast<std::size_t>(h)] == std::ldexp(1, -h - 1));
  const std::vector<double> twelve = nn::alibi_slopes(12);
  REQUIRE(twelve.size() == 12);
  for (int h = 0; h < 4; ++h) {
    CHECK(twelve[static_cast<std::size_t>(8 + h)] == std::exp2(-0.5 - h));
  }
}

TEST_CASE_TEMPLATE("ALiBi: minus slope times distance", T, float, double) {
  for (const Positions& p : all_positions()) {
    const auto bias = nn::alibi_bias<T>(kHeads, p.positions());
    const std::vector<double> slopes = nn::alibi_slopes(kHeads);
    check_terms<T>(*bias, p, {}, {}, [&](Index head, Index i, Index j) {
      return -slopes[static_cast<std::size_t>(head)] *
             static_cast<double>(std::abs(at(p.queries, i) - at(p.keys, j)));
    });
  }
}

TEST_CASE_TEMPLATE("XLNet: distance and segment terms", T, float, double) {
  for (const Positions& p : all_positions()) {
    const Index queries = static_cast<Index>(p.queries.size());
    const Index keys = static_cast<Index>(p.keys.size());
    const Matrix<T> query = random_matrix<T>(queries, kHeads * kSize, 1);
    const Matrix<T> relative = random_matrix<T>(700, kHeads * kSize, 2);
    const Matrix<T> biases = random_matrix<T>(3, kHeads * kSize, 3);
    const Matrix<T> key = random_matrix<T>(keys, kHeads * kSize, 5);
    const Matrix<T> segments = random_matrix<T>(2, kHeads * kSize, 4);
    std::vector<Index> query_segments = run_of(0, queries);
    std::vector<Index> key_segments = run_of(0, keys);
    for (Index& s : query_segments) s %= 2;
    for (Index& s : key_segments) s /= 10;
    for (const bool with_segments : {false, true}) {
      nn::XlnetTerms<T> terms;
      terms.relative = relative.view();
      terms.row = [](Index distance) { return 320 - distance; };
      terms.content_bias = biases.view().middle_rows(2, 1);
      terms.position_bias = biases.view().middle_rows(0, 1);
      if (with_segments) {
        terms.segment_bias = biases.view().middle_rows(1, 1);
        terms.segment_table = segments.view();
        terms.query_segments = query_segments;
        terms.key_segments = key_segments;
      }
      terms.scale = 0.3;
      const auto made = nn::xlnet_terms<T>(terms, p.positions());
      check_terms<T>(*made->bias(), p, query.view(), key.view(), [&](Index head, Index i, Index j) {
        const Index row = 320 - (at(p.queries, i) - at(p.keys, j));
        double sum = dot(query, i, relative, row, head) + dot(biases, 0, relative, row, head) +
                     dot(biases, 2, key, j, head);
        if (with_segments) {
          const Index other = at(query_segments, i) == at(key_segments, j) ? 0 : 1;
          sum += dot(query, i, segments, other, head) + dot(biases, 1, segments, other, head);
        }
        return 0.3 * sum;
      });
    }
  }
}

TEST_CASE_TEMPLATE("DeBERTa: queries with distances, keys with distances, or both", T, float,
                   double) {
  constexpr Index kSpan = 8;
  const Matrix<T> position_key = random_matrix<T>(2 * kSpan, kHeads * kSize, 3);
  const Matrix<T> position_query = random_matrix<T>(2 * kSpan, kHeads * kSize, 4);
  for (const Positions& p : all_positions()) {
    const Matrix<T> query =
        random_matrix<T>(static_cast<Index>(p.queries.size()), kHeads * kSize, 1);
    const Matrix<T> key = random_matrix<T>(static_cast<Index>(p.keys.size()), kHeads * kSize, 2);
    for (const Index buckets : {Index{-1}, kSpan}) {
      for (const int parts : {1, 2, 3}) {
        nn::DisentangledTerms<T> terms;
        if ((parts & 1) != 0) terms.position_key = position_key.view();
        if ((parts & 2) != 0) terms.position_query = position_query.view();
        terms.span = kSpan;
        terms.buckets = buckets;
        terms.max_distance = 32;
        terms.scale = 0.2;
        const auto made = nn::disentangled_terms<T>(terms, p.positions());
        check_terms<T>(*made->bias(), p, query.view(), key.view(),
                       [&](Index head, Index i, Index j) {
                         const Index distance = at(p.queries, i) - at(p.keys, j);
                         const Index bucket = nn::disentangled_bucket(distance, buckets, 32);
                         const Index row = std::clamp<Index>(bucket + kSpan, 0, 2 * kSpan - 1);
                         double sum = 0;
                         if ((parts & 1) != 0) sum += dot(query, i, position_key, row, head);
                         if ((parts & 2) != 0) sum += dot(key, j, position_query, row, head);
                         return 0.2 * sum;
                       });
      }
    }
  }
}

TEST_CASE("a shift of all positions changes nothing") {
  const Matrix<double> query = random_matrix<double>(30, kHeads * kSize, 1);
  const Matrix<double> key = random_matrix<double>(30, kHeads * kSize, 2);
  const Matrix<double> table = random_matrix<double>(32, kHeads * kSize, 3);
  const Positions here{run_of(0, 30), run_of(0, 30)};
  const Positions there{run_of(1000, 30), run_of(1000, 30)};
  nn::DisentangledTerms<double> terms;
  terms.position_key = terms.position_query = table.view();
  terms.span = terms.buckets = 16;
  terms.max_distance = 64;
  const auto same = [&](const nn::ScoreBias<double>& a, const nn::ScoreBias<double>& b) {
    const auto q = query.view().middle_columns(0, kSize);
    const auto k = key.view().middle_columns(0, kSize);
    return distance(added<double>(a, 0, here, q, k), added<double>(b, 0, there, q, k)) == 0;
  };
  const auto near = nn::disentangled_terms(terms, here.positions());
  const auto far = nn::disentangled_terms(terms, there.positions());
  CHECK(same(*near->bias(), *far->bias()));
  CHECK(same(*nn::alibi_bias<double>(kHeads, here.positions()),
             *nn::alibi_bias<double>(kHeads, there.positions())));
  const auto t5_near = nn::t5_terms<double>(table.view(), {}, 128, true, here.positions());
  const auto t5_far = nn::t5_terms<double>(table.view(), {}, 128, true, there.positions());
  CHECK(same(*t5_near->bias(), *t5_far->bias()));
}

TEST_CASE("sines and cosines, halves and interleaved") {
  const std::vector<double> positions = {0, 1, 7, -3.5};
  for (const bool interleaved : {false, true}) {
    Matrix<double> table(4, 6);
    nn::sinusoidal_table<double>(positions, interleaved, table.view());
    for (Index p = 0; p < 4; ++p) {
      for (Index i = 0; i < 3; ++i) {
        const double angle = positions[static_cast<std::size_t>(p)] *
                             std::pow(10000.0, -2 * static_cast<double>(i) / 6);
        CHECK(table.view().at(p, interleaved ? 2 * i : i) == std::sin(angle));
        CHECK(table.view().at(p, interleaved ? 2 * i + 1 : 3 + i) == std::cos(angle));
      }
    }
  }
}

/// Attention of `evaluation` with `bias` against the definition.
template <class Make>
void check_in_attention(const Make& make) {
  const Example<double> example({150, 150, kHeads, kHeads, kSize, kSize});
  const mask::BlockMap blocks(mask::parse_mask("causal & window(100)").bind({150, 150}));
  const auto bias = make(example);
  for (const char* name : {"softmax", "softmax_plus", "squared_relu"}) {
    nn::AttentionProblem<double> problem = example.problem(normalizer(name), &blocks);
    problem.bias = bias->bias();
    const Matrix<double> expected = define(problem);
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      CHECK(distance(evaluate(evaluation, problem), expected) < 1e-12);
    }
  }
}

TEST_CASE("every evaluation adds position terms") {
  const std::vector<Index> positions = run_of(0, 150);
  const nn::PositionIds both{positions, positions};
  const Matrix<double> table = random_matrix<double>(300, kHeads * kSize, 5);
  check_in_attention([&](const auto&) {
    return nn::t5_terms<double>(table.view().middle_rows(0, 32), {}, 128, true, both);
  });
  check_in_attention([&](const auto&) {
    nn::XlnetTerms<double> terms;
    terms.relative = table.view();
    terms.row = [](Index distance) { return 150 - distance; };
    terms.position_bias = table.view().middle_rows(0, 1);
    terms.scale = 0.4;
    return nn::xlnet_terms(terms, both);
  });
  check_in_attention([&](const auto&) {
    nn::DisentangledTerms<double> terms;
    terms.position_key = terms.position_query = table.view().middle_rows(0, 64);
    terms.span = terms.buckets = 32;
    terms.max_distance = 128;
    terms.scale = 0.4;
    return nn::disentangled_terms(terms, both);
  });
}

}  // namespace
}  // namespace masque::test
