// Masks that mean the same as another input, and normalizers that mean the same as another.
#include <algorithm>
#include <numeric>

#include <doctest/doctest.h>

#include "nn/attention/attention_evaluation.hpp"
#include "nn/example.hpp"
#include "nn/position/position.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::test {
namespace {

/// The rows of x in a new order, or some of them.
template <class T>
Matrix<T> gather(const Matrix<T>& x, const std::vector<Index>& rows) {
  Matrix<T> out(static_cast<Index>(rows.size()), x.columns());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(x.view().row(rows[i]), x.columns(), out.view().row(static_cast<Index>(i)));
  }
  return out;
}

double largest(const Matrix<float>& x) {
  double most = 0;
  for (const float element : x.span()) most = std::max(most, std::abs(double{element}));
  return most;
}

TEST_CASE("a permutation mask is the causal mask on reordered tokens") {
  constexpr Index kLength = 90;
  const mask::Mask mask = mask::parse_mask("perm_content(seed=3)").bind({kLength, kLength});
  const mask::BlockMap blocks(mask);
  const mask::BlockMap causal(mask::parse_mask("causal").bind({kLength, kLength}));
  std::vector<Index> order(kLength);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](Index a, Index b) { return blocks.visible(a) < blocks.visible(b); });
  const Example<float> example({kLength, kLength, 2, 2, 16, 16});
  Example<float> sorted = Example<float>(example.shape);
  sorted.query = gather(example.query, order);
  sorted.key = gather(example.key, order);
  sorted.value = gather(example.value, order);
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      const Matrix<float> found = evaluate(evaluation, example.problem(*normalizer, &blocks));
      const Matrix<float> expected = evaluate(evaluation, sorted.problem(*normalizer, &causal));
      // Rows of softmax sum to 1; of the others the context may be larger.
      CHECK(distance(gather(found, order), expected) <= 1e-6 * std::max(1.0, largest(expected)));
    }
  }
}

TEST_CASE("a soft cap bounds scores in every evaluation, under masks and with position terms") {
  constexpr Index kLength = 300;
  const mask::BlockMap blocks(mask::parse_mask("causal & window(90)").bind({kLength, kLength}));
  const Example<double> exact({kLength, kLength, 4, 2, 16, 16});
  const Example<float> fast(exact.shape);
  std::vector<Index> positions(kLength);
  std::iota(positions.begin(), positions.end(), 0);
  const auto bias = nn::alibi_bias<double>(4, {positions, positions});
  const auto float_bias = nn::alibi_bias<float>(4, {positions, positions});
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const bool biased : {false, true}) {
      auto problem = exact.problem(*normalizer, &blocks);
      auto in_float = fast.problem(*normalizer, &blocks);
      problem.cap = in_float.cap = 0.8;
      if (biased) problem.bias = bias.get();
      if (biased) in_float.bias = float_bias.get();
      const Matrix<double> expected = define(problem);
      problem.cap = 0;
      CHECK(distance(define(problem), expected) > 1e-3);
      problem.cap = 0.8;
      for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
        CAPTURE(evaluation.name);
        CHECK(distance(evaluate(evaluation, problem), expected) <= 1e-12);
        CHECK(distance(evaluate(evaluation, in_float), expected) <= 1e-4);
      }
    }
  }
}

TEST_CASE("an MAE mask is the removal of tokens") {
  constexpr Index kLength = 100;
  const mask::Mask mask = mask::parse_mask("mae(0.75,1)").bind({kLength, kLength});
  const mask::BlockMap blocks(mask);
  const Example<double> example({kLength, kLength, 2, 2, 8, 8});
  std::vector<Index> kept;
  for (Index j = 0; j < kLength; ++j) {
    if (mask.allows(0, j)) kept.push_back(j);
  }
  REQUIRE(kept.size() == 25);
  Example<double> removed({kLength, 25, 2, 2, 8, 8});
  removed.key = gather(example.key, kept);
  removed.value = gather(example.value, kept);
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      CHECK(distance(evaluate(evaluation, example.problem(*normalizer, &blocks)),
                     evaluate(evaluation, removed.problem(*normalizer))) <= 1e-12);
    }
  }
}

TEST_CASE("packed documents are separate documents") {
  const std::vector<Index> documents = {5, 64, 1, 58};
  const Index length = std::accumulate(documents.begin(), documents.end(), Index{0});
  const mask::BlockMap blocks(mask::parse_mask("document(5,64,1,58)").bind({length, length}));
  const Example<double> packed({length, length, 2, 2, 8, 8});
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      const Matrix<double> found = evaluate(evaluation, packed.problem(*normalizer, &blocks));
      Index first = 0;
      for (const Index size : documents) {
        std::vector<Index> rows(static_cast<std::size_t>(size));
        std::iota(rows.begin(), rows.end(), first);
        Example<double> alone({size, size, 2, 2, 8, 8});
        alone.query = gather(packed.query, rows);
        alone.key = gather(packed.key, rows);
        alone.value = gather(packed.value, rows);
        CHECK(distance(gather(found, rows), evaluate(evaluation, alone.problem(*normalizer))) <=
              1e-13);
        first += size;
      }
    }
  }
}

TEST_CASE("softmax_plus is softmax where 512 keys are visible, to the bit") {
  const nn::AttentionNormalizer& plus = normalizer("softmax_plus");
  CHECK(plus.temperature(512) == 1);
  CHECK(plus.temperature(1) == plus.temperature(16));
  CHECK(plus.temperature(16) == 4.0 / 9);
  CHECK(std::abs(plus.temperature(100) - std::log(100.0) / std::log(512.0)) < 1e-15);
  const Example<float> example({60, 512, 2, 2, 16, 16});
  for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
    CAPTURE(evaluation.name);
    CHECK(distance(evaluate(evaluation, example.problem(plus)),
                   evaluate(evaluation, example.problem(normalizer("softmax")))) == 0);
  }
}

TEST_CASE("the temperature of softmax_plus follows each row of a mask") {
  const mask::BlockMap causal(mask::parse_mask("causal").bind({40, 40}));
  const Example<double> example({40, 40, 1, 1, 8, 8});
  const Matrix<double> found = define(example.problem(normalizer("softmax_plus"), &causal));
  for (const Index i : {Index{3}, Index{30}}) {
    // The row alone, with its scale by hand.
    Example<double> row({1, i + 1, 1, 1, 8, 8});
    row.query = gather(example.query, {i});
    std::vector<Index> keys(static_cast<std::size_t>(i + 1));
    std::iota(keys.begin(), keys.end(), 0);
    row.key = gather(example.key, keys);
    row.value = gather(example.value, keys);
    nn::AttentionProblem<double> problem = row.problem(normalizer("softmax"));
    problem.scale *= std::log(std::max(16.0, static_cast<double>(i + 1))) / std::log(512.0);
    CHECK(distance(define(problem), gather(found, {i})) < 1e-14);
  }
}

/// Largest minus smallest element of each column, the largest of them.
double spread(const Matrix<double>& x) {
  double most = 0;
  for (Index e = 0; e < x.columns(); ++e) {
    double low = HUGE_VAL;
    double high = -HUGE_VAL;
    for (Index i = 0; i < x.rows(); ++i) {
      low = std::min(low, x.view().at(i, e));
      high = std::max(high, x.view().at(i, e));
    }
    most = std::max(most, high - low);
  }
  return most;
}

TEST_CASE("zero probe: equal inputs tell positions apart unless rows sum to 1") {
  constexpr Index kLength = 20;
  Example<double> example({kLength, kLength, 1, 1, 4, 4});
  for (Matrix<double>* x : {&example.query, &example.key, &example.value}) {
    std::fill(x->span().begin(), x->span().end(), 1.0);
  }
  const Matrix<double> table = random_matrix<double>(32, 1, 5);
  std::vector<Index> positions(kLength);
  std::iota(positions.begin(), positions.end(), 0);
  const auto terms = nn::t5_terms<double>(table.view(), {}, 128, true, {positions, positions});
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    nn::AttentionProblem<double> problem = example.problem(*normalizer);
    problem.bias = terms->bias();
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      const double found = spread(evaluate(evaluation, problem));
      if (normalizer->divisor() == nn::Divisor::kSum) {
        CHECK(found < 1e-14);
      } else {
        CHECK(found > 0.01);
      }
    }
  }
}

}  // namespace
}  // namespace masque::test
