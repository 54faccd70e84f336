// Every evaluation × normalizer × mask, in loops over the registries: a new one is tested here
// without a change.
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include <doctest/doctest.h>

#include "kernel/parallel.hpp"
#include "nn/attention/attention_evaluation.hpp"
#include "nn/example.hpp"

namespace masque::test {
namespace {

const std::vector<Index> kLengths = {1, 64, 65, 101};

template <class T>
void check_zoo(const Shape& sizes, const std::vector<Index>& lengths) {
  std::size_t masks = 0;
  for (const mask::MaskKind* kind : mask::mask_kinds()) {
    CAPTURE(kind->name);
    for (const mask::Mask& mask : zoo_masks(*kind, lengths)) {
      ++masks;
      Shape shape = sizes;
      shape.queries = mask.lengths().queries;
      shape.keys = mask.lengths().keys;
      CAPTURE(shape.keys);
      const mask::BlockMap blocks(mask);
      const Example<T> example(shape);
      const Example<double> exact(shape);
      const double most = tolerance(shape, example.query, example.key, example.value);
      for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
        CAPTURE(normalizer->name());
        const Matrix<double> expected = define(exact.problem(*normalizer, &blocks));
        for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
          CAPTURE(evaluation.name);
          CHECK(distance(evaluate(evaluation, example.problem(*normalizer, &blocks)), expected) <=
                most);
        }
      }
    }
  }
  // Most masks can have most lengths.
  CHECK(masks > mask::mask_kinds().size() * (1 + lengths.size()) / 2);
}

TEST_CASE("every evaluation is what is defined, for every normalizer and mask, in double") {
  REQUIRE(nn::attention_evaluations().size() >= 3);
  REQUIRE(nn::normalizers().size() >= 15);
  check_zoo<double>({1, 1, 2, 1, 8, 8}, kLengths);
}

TEST_CASE("and in float, with sizes that fill no vector") {
  check_zoo<float>({1, 1, 2, 2, 20, 13}, {65, 200});
}

TEST_CASE("any number of queries and keys, with and without a mask") {
  const nn::AttentionNormalizer& softmax = normalizer("softmax");
  for (const auto& sizes : std::vector<std::pair<Index, Index>>{
           {1, 1}, {1, 7}, {7, 1}, {13, 16}, {14, 17}, {27, 33}, {63, 65}, {3, 700}, {130, 1100}}) {
    const auto& queries = sizes.first;
    const auto& keys = sizes.second;
    CAPTURE(queries);
    CAPTURE(keys);
    const Shape shape{queries, keys, 4, 2, 12, 40};
    const Example<float> example(shape);
    const Example<double> exact(shape);
    const double most = tolerance(shape, example.query, example.key, example.value);
    const mask::BlockMap causal(
        mask::parse_mask(keys >= queries ? "causal(0)" : "window(9)").bind({queries, keys}));
    for (const mask::BlockMap* blocks : {static_cast<const mask::BlockMap*>(nullptr), &causal}) {
      const Matrix<double> expected = define(exact.problem(softmax, blocks));
      for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
        CAPTURE(evaluation.name);
        CHECK(distance(evaluate(evaluation, example.problem(softmax, blocks)), expected) <= most);
        CHECK(distance(evaluate(evaluation, exact.problem(softmax, blocks)), expected) <= 1e-13);
      }
    }
  }
}

/// The rows of a problem that a range of queries has.
template <class T>
Matrix<T> rows_of(const Matrix<T>& x, mask::Range rows) {
  return Matrix<T>::copy(x.view().middle_rows(rows.begin, rows.size()));
}

template <class T>
bool same_bits(MatrixView<const T> a, MatrixView<const T> b) {
  for (Index i = 0; i < a.rows; ++i) {
    if (std::memcmp(a.row(i), b.row(i), static_cast<std::size_t>(a.columns) * sizeof(T)) != 0) {
      return false;
    }
  }
  return a.rows == b.rows && a.columns == b.columns;
}

/// One normalizer of each kind of loop over a row, the one with the most parameters, with and
/// without bfloat16.
std::vector<std::pair<const nn::AttentionNormalizer*, bool>> with_and_without_bf16() {
  std::map<std::tuple<nn::ScoreMap, nn::Divisor, nn::UnitLength>, const nn::AttentionNormalizer*>
      kinds;
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    const nn::AttentionNormalizer*& kind =
        kinds[{normalizer->map(), normalizer->divisor(), normalizer->unit_length()}];
    if (kind == nullptr || kind->parameters().size() < normalizer->parameters().size()) {
      kind = normalizer;
    }
  }
  std::vector<std::pair<const nn::AttentionNormalizer*, bool>> out;
  for (const auto& [kind, normalizer] : kinds) {
    out.insert(out.end(), {{normalizer, false}, {normalizer, true}});
  }
  return out;
}

TEST_CASE("a row's bits do not depend on the other rows, nor on the number of threads") {
  for (const char* text : {"causal", "window(40)", "tta", "random(0.3,1)", "document(100,1,255)"}) {
    CAPTURE(text);
    const mask::Mask mask = mask::parse_mask(text).bind({356, 356});
    const mask::BlockMap all(mask);
    const Example<float> example({356, 356, 3, 1, 24, 24});
    for (const auto& choice : with_and_without_bf16()) {
      const auto& normalizer = choice.first;
      const auto& bf16 = choice.second;
      CAPTURE(normalizer->name());
      CAPTURE(bf16);
      for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
        CAPTURE(evaluation.name);
        nn::AttentionProblem<float> problem = example.problem(*normalizer, &all);
        problem.bf16 = bf16;
        kernel::set_threads(1);
        const Matrix<float> whole = evaluate(evaluation, problem);
        for (const int threads : {2, 5}) {
          kernel::set_threads(threads);
          CHECK(same_bits<float>(evaluate(evaluation, problem).view(), whole.view()));
        }
        kernel::set_threads(0);
        for (const mask::Range rows : {mask::Range{0, 1}, mask::Range{17, 19},
                                       mask::Range{100, 101}, mask::Range{33, 356}}) {
          const mask::BlockMap part(mask::query_range(mask, rows.begin, rows.size()));
          const Matrix<float> query = rows_of(example.query, rows);
          nn::AttentionProblem<float> some = problem;
          some.query = query.view();
          some.blocks = &part;
          CHECK(same_bits<float>(evaluate(evaluation, some).view(),
                                 whole.view().middle_rows(rows.begin, rows.size())));
        }
      }
    }
  }
}

/// How far results with bfloat16 operands may lie from the definition: scores by ε (their size)
/// twice, once in the numerator and once in the divisor; a weight may be rounded before or after
/// its division, 2⁻⁹ of it each time; rows of weights sum to 1.
double bf16_tolerance(const Example<float>& x) {
  double most = 0;
  for (const float v : x.value.span()) most = std::max(most, std::abs(double{v}));
  return std::ldexp(1, -8) * most + tolerance(x.shape, x.query, x.key, x.value);
}

TEST_CASE(
    "bfloat16 operands: every evaluation is near the definition, which is not that of float") {
  const nn::AttentionNormalizer& softmax = normalizer("softmax");
  for (const auto& sizes : std::vector<std::pair<Index, Index>>{
           {1, 1}, {1, 7}, {7, 1}, {13, 16}, {14, 17}, {27, 33}, {63, 65}, {3, 701}, {130, 1100}}) {
    const auto& queries = sizes.first;
    const auto& keys = sizes.second;
    for (const Index head_size : {12, 33, 64}) {
      CAPTURE(queries);
      CAPTURE(keys);
      CAPTURE(head_size);
      const Shape shape{queries, keys, 4, 2, head_size, head_size + 7};
      const Example<float> example(shape);
      const Example<double> exact(shape);
      const double most = bf16_tolerance(example);
      const mask::BlockMap causal(
          mask::parse_mask(keys >= queries ? "causal(0)" : "window(9)").bind({queries, keys}));
      for (const mask::BlockMap* blocks : {static_cast<const mask::BlockMap*>(nullptr), &causal}) {
        nn::AttentionProblem<double> definition = exact.problem(softmax, blocks);
        const Matrix<double> plain = define(definition);
        definition.bf16 = true;
        const Matrix<double> expected = define(definition);
        CHECK(distance(plain, expected) > 0);
        nn::AttentionProblem<float> problem = example.problem(softmax, blocks);
        problem.bf16 = true;
        for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
          CAPTURE(evaluation.name);
          CHECK(distance(evaluate(evaluation, problem), expected) <= most);
          // In double the operands are rounded numbers: what other processors do in float.
          CHECK(distance(evaluate(evaluation, definition), expected) <= most);
        }
      }
    }
  }
}

TEST_CASE("a query that sees nothing gets zeros, and everything stays finite") {
  const mask::Mask mask = mask::parse_mask("strict_causal & ~window(3)").bind({70, 70});
  const mask::BlockMap blocks(mask);
  const mask::BlockMap nothing(mask::parse_mask("~full").bind({70, 70}));
  const Example<float> example({70, 70, 2, 2, 8, 8});
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      Matrix<float> context(70, 16);
      nn::evaluate_attention(evaluation, example.problem(*normalizer, &blocks), context.view(),
                             [&](Index, MatrixView<const float> weights) {
                               for (Index i = 0; i < 4; ++i) {
                                 for (const float a : weights.row_span(i)) CHECK(a == 0);
                               }
                             });
      for (Index i = 0; i < 70; ++i) {
        for (const float x : context.view().row_span(i)) {
          CHECK(std::isfinite(x));
          if (i < 4) CHECK(x == 0);
        }
      }
      const Matrix<float> zero = evaluate(evaluation, example.problem(*normalizer, &nothing));
      for (const float x : zero.span()) CHECK(x == 0);
    }
  }
}

TEST_CASE("weights are shown whole: hidden ones 0, sums as promised, context their product") {
  const mask::Mask mask = mask::parse_mask("causal_window(90) | prefix(3)").bind({150, 150});
  const mask::BlockMap blocks(mask);
  const Shape shape{150, 150, 2, 1, 8, 8};
  const Example<double> example(shape);
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      const nn::AttentionProblem<double> problem = example.problem(*normalizer, &blocks);
      Matrix<double> context = context_of(problem);
      Matrix<double> product = context_of(problem);
      std::vector<Matrix<double>> weights(2);
      nn::evaluate_attention(evaluation, problem, context.view(),
                             [&](Index head, MatrixView<const double> a) {
                               weights[static_cast<std::size_t>(head)] = Matrix<double>::copy(a);
                             });
      for (Index head = 0; head < 2; ++head) {
        const MatrixView<const double> a =
            std::as_const(weights[static_cast<std::size_t>(head)]).view();
        REQUIRE(a.rows == 150);
        REQUIRE(a.columns == 150);
        for (Index i = 0; i < 150; ++i) {
          double sum = 0;
          double squares = 0;
          for (Index j = 0; j < 150; ++j) {
            if (!mask.allows(i, j)) REQUIRE(a.at(i, j) == 0);
            sum += a.at(i, j);
            squares += a.at(i, j) * a.at(i, j);
          }
          if (normalizer->divisor() == nn::Divisor::kSum && sum != 0) {
            CHECK(std::abs(sum - 1) < 1e-13);
          }
          if (normalizer->divisor() == nn::Divisor::kRootSquares)
            CHECK(std::abs(squares - 1) < 1e-13);
          for (Index e = 0; e < 8; ++e) {
            double& out = product.view().at(i, head * 8 + e);
            out = 0;
            for (Index j = 0; j < 150; ++j) out += a.at(i, j) * example.value.view().at(j, e);
          }
        }
      }
      CHECK(distance(product, context) < 1e-13);
      CHECK(distance(evaluate(evaluation, problem), context) < 1e-13);
    }
  }
}

TEST_CASE("grouped heads are heads with the same keys and values") {
  const Example<float> grouped({40, 40, 6, 2, 8, 16});
  Example<float> whole({40, 40, 6, 6, 8, 16});
  whole.query = Matrix<float>::copy(grouped.query.view());
  for (Index head = 0; head < 6; ++head) {
    for (Index j = 0; j < 40; ++j) {
      for (Index d = 0; d < 8; ++d) {
        whole.key.view().at(j, head * 8 + d) = grouped.key.view().at(j, head / 3 * 8 + d);
      }
      for (Index e = 0; e < 16; ++e) {
        whole.value.view().at(j, head * 16 + e) = grouped.value.view().at(j, head / 3 * 16 + e);
      }
    }
  }
  const nn::AttentionNormalizer& softmax = normalizer("softmax");
  for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
    CAPTURE(evaluation.name);
    CHECK(distance(evaluate(evaluation, grouped.problem(softmax)),
                   evaluate(evaluation, whole.problem(softmax))) == 0);
  }
}

TEST_CASE("scores far apart neither overflow nor lose the small ones' neighbours") {
  Example<float> example({33, 300, 1, 1, 4, 4});
  for (float& q : example.query.span()) q *= 40;
  const Shape shape = example.shape;
  Example<double> exact(shape);
  for (double& q : exact.query.span()) q *= 40;
  const double most = tolerance(shape, example.query, example.key, example.value);
  for (const char* name : {"softmax", "l2"}) {
    const Matrix<double> expected = define(exact.problem(normalizer(name)));
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      CHECK(distance(evaluate(evaluation, example.problem(normalizer(name))), expected) <= most);
    }
  }
}

TEST_CASE("models use block for up to 1024 keys, else long") {
  CHECK(nn::choose_evaluation(1).name == "block");
  CHECK(nn::choose_evaluation(1024).name == "block");
  CHECK(nn::choose_evaluation(1025).name == "long");
  CHECK(nn::find_attention_evaluation("long") == &nn::choose_evaluation(5000));
  CHECK(nn::find_attention_evaluation("none") == nullptr);
}

}  // namespace
}  // namespace masque::test
