// The attention of one query against its definition.
#include "nn/attention/row_attention.hpp"

#include <doctest/doctest.h>

#include "nn/attention/attention_evaluation.hpp"
#include "nn/example.hpp"

namespace masque::test {
namespace {

mask::BlockMap map_of(const char* name, Index queries, Index keys) {
  return mask::BlockMap(mask::parse_mask(name).bind({queries, keys}));
}

}  // namespace

TEST_CASE_TEMPLATE("one query, as dense attention has it", T, float, double) {
  const nn::AttentionNormalizer& softmax = *nn::find_normalizer("softmax");
  const nn::AttentionEvaluation& dense = *nn::find_attention_evaluation("dense");
  for (const Index keys : {1, 2, 17, 64, 300}) {
    for (const Index head_size : {1, 8, 16, 23, 64}) {
      for (const Index key_heads : {1, 2, 6}) {
        CAPTURE(keys);
        CAPTURE(head_size);
        CAPTURE(key_heads);
        const Example<T> example({1, keys, 6, key_heads, head_size, head_size + 3});
        nn::AttentionProblem<T> problem = example.problem(softmax);
        if (head_size == 16) problem.cap = 1.5;
        REQUIRE(nn::fits_row_attention(problem));
        Matrix<T> context = context_of(problem);
        nn::row_attention(problem, context.view());
        const Matrix<T> expected = evaluate(dense, problem);
        for (Index i = 0; i < context.columns(); ++i) {
          const double d =
              static_cast<double>(context.data()[i]) - static_cast<double>(expected.data()[i]);
          CHECK(std::abs(d) <= 64 * static_cast<double>(std::numeric_limits<T>::epsilon()));
        }
      }
    }
  }
}

TEST_CASE("what is more than one query that sees every key is left to the evaluations") {
  const nn::AttentionNormalizer& softmax = *nn::find_normalizer("softmax");
  const Example<float> one({1, 9, 2, 2, 8, 8});
  CHECK(nn::fits_row_attention(one.problem(softmax)));
  const mask::BlockMap full = map_of("full", 1, 9), some = map_of("strict_causal(offset=8)", 1, 9);
  CHECK(nn::fits_row_attention(one.problem(softmax, &full)));
  CHECK_FALSE(nn::fits_row_attention(one.problem(softmax, &some)));
  CHECK_FALSE(nn::fits_row_attention(one.problem(*nn::find_normalizer("log_n"))));
  CHECK_FALSE(nn::fits_row_attention(one.problem(*nn::find_normalizer("sigmoid"))));
  CHECK_FALSE(nn::fits_row_attention(Example<float>({2, 9, 2, 2, 8, 8}).problem(softmax)));
  nn::AttentionProblem<float> rounded = one.problem(softmax);
  rounded.bf16 = true;
  CHECK_FALSE(nn::fits_row_attention(rounded));
}

}  // namespace masque::test
