// Masks that differ between heads: each head is what it is where its mask is that of all heads.
#include <cstring>

#include <doctest/doctest.h>

#include "nn/attention/attention_evaluation.hpp"
#include "nn/attention/materialized_attention.hpp"
#include "nn/differentiable_example.hpp"

namespace masque::test {
namespace {

/// Three masks of `n` tokens; under the last, the first rows see nothing.
std::vector<mask::Mask> masks_of(Index n) {
  std::vector<mask::Mask> masks;
  for (const char* text : {"causal", "window(5) & ~diagonal", "strict_causal & ~window(3)"})
    masks.push_back(mask::parse_mask(text).bind({n, n}));
  return masks;
}

/// Of each mask alone, and of all together.
struct HeadMasks {
  explicit HeadMasks(Index n) {
    const std::vector<mask::Mask> masks = masks_of(n);
    for (const mask::Mask& mask : masks) alone.emplace_back(mask);
    together.emplace_back(masks[0] | masks[1] | masks[2], alone);
  }
  std::vector<mask::BlockMap> alone;
  std::vector<mask::BlockMap> together;
};

/// Whether the columns of `head` of three have the same bits in both.
template <class T>
bool same_head(const Matrix<T>& a, const Matrix<T>& b, Index head) {
  const Index size = a.columns() / 3;
  for (Index i = 0; i < a.rows(); ++i) {
    if (std::memcmp(a.view().row(i) + head * size, b.view().row(i) + head * size,
                    static_cast<std::size_t>(size) * sizeof(T)) != 0)
      return false;
  }
  return true;
}

/// One mask for all heads gives each head what `by_head` gave it, and another one does not.
template <class T, class Run>
void check_heads(const HeadMasks& masks, const Run& run) {
  const std::vector<Matrix<T>> by_head = run(&masks.together[0]);
  for (Index head = 0; head < 3; ++head) {
    CAPTURE(head);
    const std::vector<Matrix<T>> own = run(&masks.alone[static_cast<std::size_t>(head)]);
    const std::vector<Matrix<T>> other =
        run(&masks.alone[static_cast<std::size_t>((head + 1) % 3)]);
    for (std::size_t k = 0; k < by_head.size(); ++k) {
      CAPTURE(k);
      CHECK(same_head(by_head[k], own[k], head));
    }
    CHECK_FALSE(same_head(by_head[0], other[0], head));
  }
}

template <class T>
void check_evaluations(Index n) {
  CAPTURE(n);
  const HeadMasks masks(n);
  const Example<T> example({n, n, 3, 3, 8, 8});
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      check_heads<T>(masks, [&](const mask::BlockMap* blocks) {
        const nn::AttentionProblem<T> problem = example.problem(*normalizer, blocks);
        std::vector<Matrix<T>> found;
        found.push_back(evaluate(evaluation, problem));
        // With weights that are seen, rows of each head below each other.
        found.push_back(context_of(problem));
        nn::evaluate_attention(evaluation, problem, found.back().view(),
                               [](Index, MatrixView<const T>) {});
        return found;
      });
    }
    check_heads<T>(masks, [&](const mask::BlockMap* blocks) {
      Passes<T> passes = run_passes<T>({example.problem(*normalizer, blocks)});
      std::vector<Matrix<T>> found;
      for (const Matrix<T>* x : passes.results()) found.push_back(Matrix<T>::copy(x->view()));
      return found;
    });
  }
}

TEST_CASE("each head under its own mask is what it is under that mask alone") {
  check_evaluations<float>(40);
  check_evaluations<double>(70);
  check_evaluations<float>(130);
}

TEST_CASE("heads with largest keys and scores of the layer before have masks of their own") {
  const HeadMasks masks(33);
  const Example<double> example({33, 33, 3, 3, 8, 8});
  const Example<double> before({33, 33, 3, 3, 33, 8});
  std::vector<MatrixView<const double>> previous;
  for (Index head = 0; head < 3; ++head)
    previous.push_back(before.query.view().middle_columns(head * 33, 33));
  for (const char* name : {"softmax", "squared_relu", "log_n"}) {
    CAPTURE(name);
    check_heads<double>(masks, [&](const mask::BlockMap* blocks) {
      nn::MaterializedAttention<double> attention;
      attention.problem = example.problem(normalizer(name), blocks);
      attention.previous = previous;
      attention.largest = 4;
      std::vector<Matrix<double>> found;
      found.push_back(context_of(attention.problem));
      nn::MaterializedSaved<double> saved;
      nn::materialized_attention_forward<double>(attention, found[0].view(), &saved);
      const Matrix<double> d_context = random_matrix<double>(33, 24, 9);
      for (int k = 0; k < 3; ++k) found.push_back(Matrix<double>::zero(33, 24));
      nn::MaterializedGradients<double> gradients;
      gradients.query = found[1].view();
      gradients.key = found[2].view();
      gradients.value = found[3].view();
      nn::materialized_attention_backward<double>(attention, saved, d_context.view(), gradients);
      return found;
    });
  }
}

TEST_CASE("one query that sees every key in all heads together, but not in each") {
  const mask::Lengths lengths{1, 4};
  std::vector<mask::BlockMap> heads;
  for (const char* text : {"causal(3)", "~causal(2)"})
    heads.emplace_back(mask::parse_mask(text).bind(lengths));
  const mask::BlockMap together(mask::parse_mask("full").bind(lengths), heads);
  CHECK(together.heads() == 2);
  CHECK(together.bytes() > heads[0].bytes() + heads[1].bytes());
  CHECK(&heads[0].of_head(1) == &heads[0]);
  const Example<double> example({1, 4, 2, 2, 8, 8});
  const nn::AttentionProblem<double> problem = example.problem(normalizer("softmax"), &together);
  const Matrix<double> expected = define(problem);
  for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations())
    CHECK(distance(evaluate(evaluation, problem), expected) < 1e-13);
  CHECK(distance(define(example.problem(normalizer("softmax"))), expected) > 1e-3);
}

}  // namespace
}  // namespace masque::test
