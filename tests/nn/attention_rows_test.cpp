// What a visitor gets besides weights: shift and divisor of each row, and the scores.
#include <atomic>
#include <cmath>
#include <limits>

#include <doctest/doctest.h>

#include "nn/attention/attention_evaluation.hpp"
#include "nn/attention/row_mask.hpp"
#include "nn/attention/unit_length.hpp"
#include "nn/example.hpp"

namespace masque::test {
namespace {

void check_rows(const nn::AttentionEvaluation& evaluation, nn::AttentionProblem<double> problem) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  const Index queries = problem.query.rows;
  const Index keys = problem.key.rows;
  Matrix<double> log_divisors(problem.num_heads, queries);
  Matrix<double> scores(problem.num_heads * queries, keys);
  problem.log_divisors = log_divisors.view();
  problem.scores = scores.view();
  std::atomic<Index> calls = 0;
  Matrix<double> context = context_of(problem);
  nn::evaluate_attention(evaluation, problem, context.view(),
                         [&](Index, MatrixView<const double>) { ++calls; });
  CHECK(calls == problem.num_heads);
  Matrix<double> expected(queries, keys);
  const nn::OperandProblem<double> operands(problem);
  nn::RowMask mask(problem.blocks, keys);
  for (Index head = 0; head < problem.num_heads; ++head) {
    nn::reference::scores(operands.get(), head, expected.view());
    for (Index i = 0; i < queries; ++i) {
      mask.read(i);
      const double temperature = problem.normalizer->temperature(mask.count());
      for (Index j = 0; j < keys; ++j) {
        const double found = scores.view().at(head * queries + i, j);
        if (mask.visible(j)) {
          CHECK(std::fabs(found - temperature * expected.view().at(i, j)) < 1e-12);
        } else {
          CHECK(found == kNone);
        }
      }
      const auto [shift, divisor] =
          nn::reference::normalize_row(*problem.normalizer, mask, expected.view().row_span(i));
      const double found = log_divisors.view().at(head, i);
      if (divisor == 0) {
        CHECK(found == kNone);
      } else {
        CHECK(std::fabs(found - (shift + std::log(divisor))) < 1e-12);
      }
    }
  }
}

TEST_CASE("shift and divisor of rows, and scores, for every normalizer") {
  for (const Index length : {1, 7, 130}) {
    const Shape shape{length, length, 4, 2, 12, 8};
    const Example<double> example(shape);
    // Row 0 sees nothing.
    const mask::BlockMap some(mask::parse_mask("causal & tta").bind({length, length}));
    for (const mask::BlockMap* blocks : {static_cast<const mask::BlockMap*>(nullptr), &some}) {
      for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
        CAPTURE(normalizer->name());
        for (const char* name : {"block", "long"}) {
          CAPTURE(name);
          check_rows(*nn::find_attention_evaluation(name), example.problem(*normalizer, blocks));
        }
      }
    }
  }
}

}  // namespace
}  // namespace masque::test
