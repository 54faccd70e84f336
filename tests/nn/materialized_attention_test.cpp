// Materialized attention against plain attention, against its parts by hand, and its gradients.
#include "nn/attention/materialized_attention.hpp"

#include <algorithm>
#include <cmath>

#include <doctest/doctest.h>

#include "mask/bit_matrix.hpp"
#include "mask/builtin.hpp"
#include "nn/attention/attention_evaluation.hpp"
#include "nn/attention/attention_gradients.hpp"
#include "nn/materialized_example.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

constexpr std::array kMasks = {"full", "causal",    "strict_causal",
                               "tta",  "window(1)", "random(0.4,2)"};

template <class T>
Matrix<T> identity(Index n) {
  Matrix<T> out = Matrix<T>::zero(n, n);
  for (Index i = 0; i < n; ++i) out.view().at(i, i) = static_cast<T>(1);
  return out;
}

template <class T>
Matrix<T> run(const nn::MaterializedAttention<T>& attention, Index width) {
  Matrix<T> context(attention.problem.query.rows, width);
  nn::materialized_attention_forward<T>(attention, context.view(), nullptr);
  return context;
}

template <class T>
void check_plain() {
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const char* text : kMasks) {
      CAPTURE(text);
      for (const Index n : {1, 7}) {
        const mask::BlockMap blocks(mask::parse_mask(text).bind({n, n}));
        const Example<T> example({n, n, 4, 2, 3, 5});
        nn::MaterializedAttention<T> attention;
        attention.problem = example.problem(*normalizer, &blocks);
        const Matrix<T> expected = define(attention.problem);
        CHECK(distance(run(attention, 20), expected) == 0);
        const Matrix<T> lambda = identity<T>(4);
        attention.talking_before = lambda.view();
        CHECK(distance(run(attention, 20), expected) == 0);
        attention.talking_after = lambda.view();
        CHECK(distance(run(attention, 20), expected) == 0);
        attention.talking_before = {};
        CHECK(distance(run(attention, 20), expected) == 0);
      }
    }
  }
}

TEST_CASE("talking heads with the identity are plain heads, to the bit, and so is nothing at all") {
  check_plain<float>();
  check_plain<double>();
}

/// Softmax attention of heads that talk, each with queries and keys or values of its own:
/// `before` (heads of weights, of scores), `after` (of values, of weights).
Matrix<double> talk_by_definition(const nn::AttentionProblem<double>& problem,
                                  MatrixView<const double> before, MatrixView<const double> after) {
  const Index keys = problem.key.rows;
  const Index size = problem.key.columns / before.columns;
  const Index value_size = problem.value.columns / after.rows;
  Matrix<double> context = Matrix<double>::zero(problem.query.rows, problem.value.columns);
  for (Index i = 0; i < problem.query.rows; ++i) {
    Matrix<double> weights(before.rows, keys);
    for (Index w = 0; w < before.rows; ++w) {
      double sum = 0;
      for (Index j = 0; j < keys; ++j) {
        double score = 0;
        for (Index h = 0; h < before.columns; ++h) {
          for (Index d = 0; d < size; ++d) {
            score += before.at(w, h) * problem.query.at(i, h * size + d) *
                     problem.key.at(j, h * size + d) / std::sqrt(static_cast<double>(size));
          }
        }
        sum += weights.view().at(w, j) = std::exp(score);
      }
      for (double& a : weights.view().row_span(w)) a /= sum;
    }
    for (Index v = 0; v < after.rows; ++v) {
      for (Index w = 0; w < after.columns; ++w) {
        for (Index j = 0; j < keys; ++j) {
          for (Index e = 0; e < value_size; ++e) {
            context.view().at(i, v * value_size + e) +=
                after.at(v, w) * weights.view().at(w, j) * problem.value.at(j, v * value_size + e);
          }
        }
      }
    }
  }
  return context;
}

/// The scores and divisors of the normalizer, as an evaluation gives them.
struct NormalizerRows {
  explicit NormalizerRows(nn::AttentionProblem<double>& problem)
      : log_divisors(problem.num_heads, problem.query.rows),
        scores(Matrix<double>::zero(problem.num_heads * problem.query.rows, problem.key.rows)) {
    problem.log_divisors = log_divisors.view();
    problem.scores = scores.view();
  }
  Matrix<double> log_divisors, scores;
};

TEST_CASE("scores and divisors are those of plain attention") {
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const char* text : kMasks) {
      CAPTURE(text);
      const mask::BlockMap blocks(mask::parse_mask(text).bind({7, 7}));
      const Example<double> example({7, 7, 4, 2, 3, 5});
      nn::AttentionProblem<double> problem = example.problem(*normalizer, &blocks);
      Matrix<double> context(7, 20);
      const NormalizerRows expected(problem);
      nn::evaluate_attention(*nn::find_attention_evaluation("block"), problem, context.view(),
                             [](Index, MatrixView<const double>) {});
      nn::MaterializedAttention<double> attention;
      attention.problem = problem;
      const NormalizerRows found(attention.problem);
      run(attention, 20);
      for (const auto part : {&NormalizerRows::log_divisors, &NormalizerRows::scores}) {
        const auto a = (found.*part).span(), b = (expected.*part).span();
        for (std::size_t k = 0; k < a.size(); ++k)
          CHECK((a[k] == b[k] || std::fabs(a[k] - b[k]) < 1e-12));
      }
    }
  }
}

TEST_CASE("scores and divisors of joined layers and largest keys give the weights") {
  const mask::BlockMap blocks(mask::parse_mask("causal").bind({7, 7}));
  const Example<double> example({7, 7, 4, 2, 3, 5});
  nn::MaterializedAttention<double> attention;
  attention.problem = example.problem(normalizer("softmax"), &blocks);
  attention.largest = 3;
  std::vector<Matrix<double>> before;
  std::vector<MatrixView<const double>> previous;
  for (std::uint64_t head = 0; head < 4; ++head)
    before.push_back(random_matrix<double>(7, 7, 30 + head));
  for (const Matrix<double>& one : before) previous.push_back(one.view());
  attention.previous = previous;
  const NormalizerRows rows(attention.problem);
  Matrix<double> context(7, 20);
  nn::MaterializedSaved<double> saved;
  nn::materialized_attention_forward<double>(attention, context.view(), &saved);
  for (Index head = 0; head < 4; ++head) {
    const auto at = static_cast<std::size_t>(head);
    for (Index i = 0; i < 7; ++i) {
      Index visible = 0;
      for (Index j = 0; j < 7; ++j) {
        const double score = rows.scores.view().at(head * 7 + i, j);
        const double weight = std::exp(score - rows.log_divisors.view().at(head, i));
        CHECK(std::fabs(weight - saved.weights[at].view().at(i, j)) < 1e-14);
        if (std::isinf(score)) continue;
        ++visible;
        CHECK(score == saved.scores[at].view().at(i, j));
      }
      CHECK(visible == std::min<Index>(i + 1, 3));
    }
  }
}

TEST_CASE("heads talk: scores before the normalizer, weights after it") {
  const Example<double> example({4, 5, 2, 2, 3, 2});
  const Matrix<double> before = random_matrix<double>(3, 2, 20);
  const Matrix<double> after = random_matrix<double>(2, 3, 21);
  nn::MaterializedAttention<double> attention;
  attention.problem = example.problem(normalizer("softmax"));
  attention.talking_before = before.view();
  attention.talking_after = after.view();
  const Matrix<double> expected =
      talk_by_definition(attention.problem, before.view(), after.view());
  CHECK(distance(run(attention, 4), expected) < 1e-14);
}

TEST_CASE("talking heads: a query has the same bits for any number of queries") {
  for (const Index heads : {1, 2, 5, 12, 33}) {
    const Example<float> example({40, 23, heads, 1, 3, 2});
    const Matrix<float> before = random_matrix<float>(heads, heads, 20);
    const Matrix<float> after = random_matrix<float>(3, heads, 21);
    nn::MaterializedAttention<float> attention;
    attention.problem = example.problem(normalizer("softmax"));
    attention.talking_before = before.view();
    attention.talking_after = after.view();
    attention.num_value_heads = 1;
    const MatrixView<const float> query = attention.problem.query;
    const Matrix<float> all = run(attention, 6);
    for (Index queries = 1; queries < query.rows; ++queries) {
      CAPTURE(heads);
      CAPTURE(queries);
      attention.problem.query = query.middle_rows(0, queries);
      const Matrix<float> some = run(attention, 6);
      CHECK(distance(some, Matrix<float>::copy(all.view().middle_rows(0, queries))) == 0);
    }
  }
}

TEST_CASE("talking heads: scores of hidden pairs that are not finite change nothing") {
  const mask::BlockMap causal(mask::parse_mask("causal").bind({5, 5}));
  const Example<double> example({5, 5, 2, 2, 3, 2});
  const Matrix<double> talking = random_matrix<double>(3, 2, 20);
  const Matrix<double> w = random_matrix<double>(5, 6, 9);
  const auto gradients_with = [&](double hidden, Matrix<double>& context) {
    std::vector<Matrix<double>> before;
    std::vector<MatrixView<const double>> previous;
    for (std::uint64_t head = 0; head < 2; ++head) {
      before.push_back(random_matrix<double>(5, 5, 30 + head));
      for (Index i = 0; i < 5; ++i) {
        for (Index j = i + 1; j < 5; ++j) before.back().view().at(i, j) = hidden;
      }
    }
    for (const Matrix<double>& one : before) previous.push_back(one.view());
    nn::MaterializedAttention<double> attention;
    attention.problem = example.problem(normalizer("softmax"), &causal);
    attention.talking_before = talking.view();
    attention.previous = previous;
    attention.num_value_heads = 1;
    attention.problem.value = example.value.view().middle_columns(0, 2);
    nn::MaterializedSaved<double> saved;
    nn::materialized_attention_forward<double>(attention, context.view(), &saved);
    Matrix<double> d_talking = Matrix<double>::zero(3, 2);
    Matrix<double> d_query = Matrix<double>::zero(5, 6);
    nn::MaterializedGradients<double> gradients;
    gradients.talking_before = d_talking.view();
    gradients.query = d_query.view();
    nn::materialized_attention_backward<double>(attention, saved, w.view(), gradients);
    return std::pair{std::move(d_talking), std::move(d_query)};
  };
  Matrix<double> expected_context(5, 6), context(5, 6);
  const auto expected = gradients_with(0, expected_context);
  for (const double hidden : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    CAPTURE(hidden);
    const auto found = gradients_with(hidden, context);
    CHECK(distance(context, expected_context) == 0);
    CHECK(distance(found.first, expected.first) == 0);
    CHECK(distance(found.second, expected.second) == 0);
  }
}

/// Talking heads whose numbers of scores, of weights and of values differ: 4, 3, 2.
template <class T>
struct OwnValueHeads {
  static constexpr Index kQueries = 5, kKeys = 7, kKey = 3, kValue = 2;

  /// Queries, keys, values, Λ before and after.
  std::array<Matrix<T>, 5> x{
      random_matrix<T>(kQueries, 4 * kKey, 1), random_matrix<T>(kKeys, 4 * kKey, 2),
      random_matrix<T>(kKeys, 2 * kValue, 3), random_matrix<T>(3, 4, 4), random_matrix<T>(2, 3, 5)};

  nn::MaterializedAttention<T> attention() const {
    nn::MaterializedAttention<T> out;
    out.problem.query = x[0].view();
    out.problem.key = x[1].view();
    out.problem.value = x[2].view();
    out.problem.num_heads = out.problem.num_key_value_heads = 4;
    out.problem.scale = 1 / std::sqrt(static_cast<double>(kKey));
    out.problem.normalizer = &normalizer("softmax");
    out.talking_before = x[3].view();
    out.talking_after = x[4].view();
    out.num_value_heads = 2;
    return out;
  }
};

TEST_CASE("heads of values have values of their own, whatever the number of keys") {
  constexpr double kStep = 1e-40;
  using Heads = OwnValueHeads<double>;
  const Heads heads;
  const nn::MaterializedAttention<double> attention = heads.attention();
  Matrix<double> context(Heads::kQueries, 2 * Heads::kValue);
  nn::MaterializedSaved<double> saved;
  nn::materialized_attention_forward<double>(attention, context.view(), &saved);
  CHECK(saved.scores.size() == 4);
  CHECK(saved.normalized.size() == 3);
  CHECK(saved.weights.size() == 2);
  const Matrix<double> expected =
      talk_by_definition(attention.problem, attention.talking_before, attention.talking_after);
  CHECK(distance(context, expected) < 1e-14);

  const Matrix<double> w = random_matrix<double>(context.rows(), context.columns(), 6);
  std::array<Matrix<double>, 5> d;
  for (std::size_t k = 0; k < d.size(); ++k)
    d[k] = Matrix<double>::zero(heads.x[k].rows(), heads.x[k].columns());
  nn::MaterializedGradients<double> gradients;
  gradients.query = d[0].view();
  gradients.key = d[1].view();
  gradients.value = d[2].view();
  gradients.talking_before = d[3].view();
  gradients.talking_after = d[4].view();
  nn::materialized_attention_backward<double>(attention, saved, w.view(), gradients);
  OwnValueHeads<Complex> steps;
  for (std::size_t k = 0; k < d.size(); ++k) {
    CAPTURE(k);
    for (std::size_t i = 0; i < d[k].span().size(); ++i) {
      steps.x[k].span()[i] += Complex(0, kStep);
      const Matrix<Complex> moved = run(steps.attention(), context.columns());
      steps.x[k].span()[i].imag(0);
      double along = 0;
      for (std::size_t c = 0; c < w.span().size(); ++c)
        along += w.span()[c] * moved.span()[c].imag() / kStep;
      CHECK(std::abs(d[k].span()[i] - along) <= 1e-12 * (1 + std::abs(along)));
    }
  }
}

TEST_CASE("the keys with the largest scores are a mask, and of equal ones the first stay") {
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const char* text : {"full", "causal", "random(0.4,2)"}) {
      CAPTURE(text);
      for (const Index largest : {1, 3, 70, 80}) {
        CAPTURE(largest);
        const Index n = 70;
        const mask::Mask mask = mask::parse_mask(text).bind({n, n});
        const mask::BlockMap blocks(mask);
        const Example<double> example({n, n, 1, 1, 3, 2});
        nn::MaterializedAttention<double> attention;
        attention.problem = example.problem(*normalizer, &blocks);
        attention.largest = largest;
        const nn::OperandProblem<double> operands(attention.problem);
        Matrix<double> scores(n, n);
        nn::reference::scores(operands.get(), 0, scores.view());
        mask::BitMatrix bits(n, n);
        for (Index i = 0; i < n; ++i) {
          for (Index j = 0; j < n; ++j) {
            Index larger = 0;
            for (Index k = 0; k < n; ++k) {
              if (mask.allows(i, k) && scores.view().at(i, k) > scores.view().at(i, j)) ++larger;
            }
            if (mask.allows(i, j) && larger < largest) bits.set(i, j);
          }
        }
        const mask::BlockMap kept(mask::from_bits(std::move(bits)));
        nn::AttentionProblem<double> expected = attention.problem;
        expected.blocks = &kept;
        CHECK(distance(run(attention, 2), define(expected)) == 0);
      }
    }
  }
  // All scores of a query of zeros are equal.
  const Example<double> example({2, 5, 1, 1, 3, 2});
  nn::MaterializedAttention<double> attention;
  attention.problem = example.problem(normalizer("softmax"));
  const Matrix<double> zeros = Matrix<double>::zero(2, 3);
  attention.problem.query = zeros.view();
  attention.largest = 2;
  const Matrix<double> found = run(attention, 2);
  for (Index e = 0; e < 2; ++e) {
    const auto& value = attention.problem.value;
    CHECK(std::abs(found.view().at(0, e) - (value.at(0, e) + value.at(1, e)) / 2) < 1e-15);
  }
}

TEST_CASE("the size of keys is free of the number of heads and of the size of values") {
  // Width 8 and 4 heads: values of 2, keys of 1, 16 and 33.
  for (const Index key_size : {1, 16, 33}) {
    CAPTURE(key_size);
    const Example<double> example({70, 70, 4, 4, key_size, 2});
    const nn::AttentionProblem<double> problem = example.problem(normalizer("softmax"));
    nn::MaterializedAttention<double> general;
    general.problem = problem;
    const Matrix<double> expected = define(problem);
    REQUIRE(expected.columns() == 8);
    CHECK(distance(run(general, 8), expected) == 0);
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      CHECK(distance(evaluate(evaluation, problem), expected) < 1e-13);
    }
  }
}

TEST_CASE("RealFormer: scores of all layers, or of the one before alone") {
  const Index n = 6;
  const mask::BlockMap causal(mask::parse_mask("causal").bind({n, n}));
  for (const bool own : {false, true}) {
    CAPTURE(own);
    std::vector<Matrix<double>> plain;  // scores of each layer, head 0
    std::vector<Matrix<double>> handed(2);
    for (int layer = 0; layer < 3; ++layer) {
      Example<double> example({n, n, 2, 2, 3, 3});
      example.query = random_matrix<double>(n, 6, 30 + static_cast<std::uint64_t>(layer));
      nn::MaterializedAttention<double> attention;
      attention.problem = example.problem(normalizer("softmax"), &causal);
      plain.emplace_back(n, n);
      nn::reference::scores(attention.problem, 0, plain.back().view());
      std::vector<MatrixView<const double>> previous;
      for (const Matrix<double>& scores : handed) {
        if (layer > 0) previous.push_back(scores.view());
      }
      attention.previous = previous;
      attention.pass_own_scores = own;
      Matrix<double> context(n, 6);
      nn::MaterializedSaved<double> saved;
      nn::materialized_attention_forward(attention, context.view(), &saved);
      // Weights of the last row, from the sum that it should have seen.
      std::vector<double> row(static_cast<std::size_t>(n));
      for (int l = own ? std::max(0, layer - 1) : 0; l <= layer; ++l) {
        for (Index j = 0; j < n; ++j) {
          row[static_cast<std::size_t>(j)] +=
              plain[static_cast<std::size_t>(l)].view().at(n - 1, j);
        }
      }
      nn::RowMask mask(&causal, n);
      mask.read(n - 1);
      nn::reference::normalize_row<double>(normalizer("softmax"), mask, row);
      for (Index j = 0; j < n; ++j) {
        CHECK(std::abs(saved.weights[0].view().at(n - 1, j) - row[static_cast<std::size_t>(j)]) <
              1e-14);
      }
      if (own) CHECK(distance(saved.scores[0], plain.back()) == 0);
      handed = std::move(saved.scores);
    }
  }
}

/// Σ w ⊙ contexts of both layers.
template <class T>
T objective(MaterializedExample<T>& example, const Matrix<double>& w, const Matrix<double>& w2) {
  Matrix<T> context(w.rows(), w.columns());
  Matrix<T> second(w2.rows(), w2.columns());
  nn::MaterializedSaved<T> saved;
  nn::MaterializedSaved<T> second_saved;
  example.forward(context.view(), second.view(), saved, second_saved);
  T sum{};
  for (Index i = 0; i < w.rows() * w.columns(); ++i) sum += w.data()[i] * context.data()[i];
  for (Index i = 0; i < w2.rows() * w2.columns(); ++i) sum += w2.data()[i] * second.data()[i];
  return sum;
}

/// Gradients by everything of the example, in its order.
std::array<Matrix<double>, 12> gradients_of(MaterializedExample<double>& example,
                                            const Matrix<double>& w, const Matrix<double>& w2) {
  std::array<Matrix<double>, 12> d;
  for (std::size_t k = 0; k < d.size(); ++k) {
    d[k] = Matrix<double>::zero(example.x[k].rows(), example.x[k].columns());
  }
  const Index n = w.rows();
  Matrix<double> context(n, w.columns());
  Matrix<double> second(n, w2.columns());
  nn::MaterializedSaved<double> saved;
  nn::MaterializedSaved<double> second_saved;
  example.forward(context.view(), second.view(), saved, second_saved);
  std::array<Matrix<double>, 2> d_handed = {Matrix<double>::zero(n, n), Matrix<double>::zero(n, n)};
  const std::vector<MatrixView<double>> to_first = {d_handed[0].view(), d_handed[1].view()};
  nn::MaterializedGradients<double> after;
  after.query = d[10].view();
  after.key = d[11].view();
  after.value = d[2].view();
  after.previous = to_first;
  nn::materialized_attention_backward<double>(example.second, second_saved, w2.view(), after);
  const std::vector<MatrixView<double>> d_previous = {d[5].view(), d[6].view()};
  const std::vector<MatrixView<const double>> from_next = {std::as_const(d_handed[0]).view(),
                                                           std::as_const(d_handed[1]).view()};
  nn::MaterializedGradients<double> gradients;
  gradients.query = d[0].view();
  gradients.key = d[1].view();
  gradients.value = d[2].view();
  gradients.talking_before = d[3].view();
  gradients.talking_after = d[4].view();
  gradients.previous = d_previous;
  gradients.scores = from_next;
  gradients.bias = &example.bias;
  gradients.weight_terms = &example.factor;
  gradients.value_terms = &example.terms;
  nn::materialized_attention_backward<double>(example.first, saved, w.view(), gradients);
  d[7] = std::move(example.factor.gradient);
  d[8] = std::move(example.terms.gradient);
  d[9] = std::move(example.bias.gradient);
  return d;
}

TEST_CASE("gradients of all parts through two layers, along random directions") {
  constexpr double kStep = 1e-40;
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const char* text : kMasks) {
      CAPTURE(text);
      for (const Index n : {1, 5}) {
        for (const bool own : {false, true}) {
          const mask::BlockMap blocks(mask::parse_mask(text).bind({n, n}));
          MaterializedExample<double> example(n, *normalizer, &blocks, own);
          MaterializedExample<Complex> steps(n, *normalizer, &blocks, own);
          const Matrix<double> w =
              random_matrix<double>(n, MaterializedExample<double>::width_of_first(), 40);
          const Matrix<double> w2 =
              random_matrix<double>(n, MaterializedExample<double>::width_of_second(), 41);
          const auto d = gradients_of(example, w, w2);
          for (std::size_t k = 0; k < d.size(); ++k) {
            CAPTURE(k);
            const Index count = d[k].rows() * d[k].columns();
            const Matrix<double> direction =
                random_matrix<double>(d[k].rows(), d[k].columns(), 50 + k);
            double along = 0;
            for (Index i = 0; i < count; ++i) {
              along += d[k].data()[i] * direction.data()[i];
              steps.x[k].data()[i] += Complex(0, kStep * direction.data()[i]);
            }
            const double expected = objective(steps, w, w2).imag() / kStep;
            for (Index i = 0; i < count; ++i) steps.x[k].data()[i].imag(0);
            CHECK(std::abs(along - expected) <= 1e-12 * (1 + std::abs(expected)));
          }
        }
      }
    }
  }
}

TEST_CASE(
    "the general backward is the plain one where nothing is added, and adds to what is there") {
  const mask::BlockMap blocks(mask::parse_mask("causal").bind({7, 7}));
  const Example<double> example({7, 7, 4, 2, 3, 2});
  const Matrix<double> w = random_matrix<double>(7, 8, 9);
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    nn::MaterializedAttention<double> attention;
    attention.problem = example.problem(*normalizer, &blocks);
    Matrix<double> d_key = Matrix<double>::zero(7, 6);
    nn::attention_reference_backward<double>(attention.problem, w.view(), {{}, d_key.view(), {}});
    Matrix<double> context(7, 8);
    nn::MaterializedSaved<double> saved;
    nn::materialized_attention_forward(attention, context.view(), &saved);
    nn::MaterializedGradients<double> gradients;
    gradients.key = d_key.view();
    const Matrix<double> once = Matrix<double>::copy(d_key.view());
    nn::materialized_attention_backward<double>(attention, saved, w.view(), gradients);
    for (Index i = 0; i < 42; ++i) {
      CHECK(std::abs(d_key.data()[i] - 2 * once.data()[i]) <=
            1e-13 * (1 + std::abs(once.data()[i])));
    }
  }
}

}  // namespace
}  // namespace masque::test
