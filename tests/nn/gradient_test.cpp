// Gradients against complex steps: Im f(x + ih) / h is the derivative, without cancellation.
#include <array>
#include <numeric>

#include <doctest/doctest.h>

#include "nn/attention/attention_gradients.hpp"
#include "nn/example.hpp"
#include "nn/position/position.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

constexpr double kStep = 1e-40;

/// Σ w ⊙ context, as a number with its derivative.
Complex objective(const nn::AttentionProblem<Complex>& problem, const Matrix<double>& w) {
  Matrix<Complex> context = context_of(problem);
  nn::attention_reference(problem, context.view());
  Complex sum = 0;
  for (Index i = 0; i < context.rows() * context.columns(); ++i) {
    sum += w.data()[i] * context.data()[i];
  }
  return sum;
}

/// The worst relative error of `found` as the gradient by `x`, which `problem` reads.
double worst(const nn::AttentionProblem<Complex>& problem, const Matrix<double>& w,
             Matrix<Complex>& x, const Matrix<double>& found) {
  double most = 0;
  for (Index i = 0; i < x.rows() * x.columns(); ++i) {
    x.data()[i] += Complex(0, kStep);
    const double expected = objective(problem, w).imag() / kStep;
    x.data()[i] -= Complex(0, kStep);
    const double error = std::abs(found.data()[i] - expected) / (1 + std::abs(expected));
    if (!(error <= most)) most = error;
  }
  return most;
}

TEST_CASE("gradients of queries, keys and values, for every normalizer and mask") {
  const Shape shape{7, 7, 4, 2, 3, 2};
  const Example<double> example(shape);
  Example<Complex> steps(shape);
  const Matrix<double> w = random_matrix<double>(7, 8, 9);
  std::vector<Index> positions(7);
  std::iota(positions.begin(), positions.end(), 0);
  const auto bias = nn::alibi_bias<double>(4, {positions, positions});
  const auto complex_bias = nn::alibi_bias<Complex>(4, {positions, positions});
  for (const char* text :
       {"full", "causal", "strict_causal", "tta", "window(1)", "random(0.4,2)"}) {
    CAPTURE(text);
    const mask::BlockMap blocks(mask::parse_mask(text).bind({7, 7}));
    for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
      CAPTURE(normalizer->name());
      for (const auto& [with_bias, cap] : {std::pair(false, 0.0), std::pair(true, 0.0),
                                           std::pair(false, 0.7), std::pair(true, 0.7)}) {
        nn::AttentionProblem<double> problem = example.problem(*normalizer, &blocks);
        nn::AttentionProblem<Complex> complex_problem = steps.problem(*normalizer, &blocks);
        problem.cap = complex_problem.cap = cap;
        if (with_bias) {
          problem.bias = bias.get();
          complex_problem.bias = complex_bias.get();
        }
        Matrix<double> d_query = Matrix<double>::zero(7, 12);
        Matrix<double> d_key = Matrix<double>::zero(7, 6);
        Matrix<double> d_value = Matrix<double>::zero(7, 4);
        nn::attention_reference_backward<double>(problem, w.view(),
                                                 {d_query.view(), d_key.view(), d_value.view()});
        CHECK(worst(complex_problem, w, steps.query, d_query) < 1e-13);
        CHECK(worst(complex_problem, w, steps.key, d_key) < 1e-13);
        CHECK(worst(complex_problem, w, steps.value, d_value) < 1e-13);
      }
    }
  }
}

/// Every element plus `factor` times that of a direction of its own.
void move_along(Example<Complex>& example, Complex factor) {
  std::uint64_t seed = 60;
  for (Matrix<Complex>* x : {&example.query, &example.key, &example.value}) {
    const Matrix<double> direction = random_matrix<double>(x->rows(), x->columns(), seed++);
    for (std::size_t i = 0; i < x->span().size(); ++i) {
      x->span()[i] += factor * direction.span()[i];
    }
  }
}

TEST_CASE("gradients along a direction, for every normalizer and every mask of the zoo") {
  for (const mask::MaskKind* kind : mask::mask_kinds()) {
    CAPTURE(kind->name);
    for (const mask::Mask& mask : zoo_masks(*kind, {1})) {
      const Index n = mask.lengths().queries;
      const Index keys = mask.lengths().keys;
      const mask::BlockMap blocks(mask);
      const Shape shape{n, keys, 2, 1, 3, 2};
      const Example<double> example(shape);
      Example<Complex> steps(shape);
      move_along(steps, Complex(0, kStep));
      const Matrix<double> w = random_matrix<double>(n, 4, 9);
      for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
        CAPTURE(normalizer->name());
        const nn::AttentionProblem<double> problem = example.problem(*normalizer, &blocks);
        std::array<Matrix<double>, 3> d = {Matrix<double>::zero(n, 6),
                                           Matrix<double>::zero(keys, 3),
                                           Matrix<double>::zero(keys, 2)};
        nn::attention_reference_backward<double>(problem, w.view(),
                                                 {d[0].view(), d[1].view(), d[2].view()});
        double along = 0;
        for (std::size_t k = 0; k < d.size(); ++k) {
          const Matrix<double> direction =
              random_matrix<double>(d[k].rows(), d[k].columns(), 60 + k);
          along += std::inner_product(d[k].span().begin(), d[k].span().end(),
                                      direction.span().begin(), 0.0);
        }
        const double expected = objective(steps.problem(*normalizer, &blocks), w).imag() / kStep;
        CHECK(std::abs(along - expected) <= 1e-12 * (1 + std::abs(expected)));
      }
    }
  }
}

TEST_CASE("rows that see nothing, and vectors of zeros, have the gradient 0") {
  const mask::BlockMap nothing(mask::parse_mask("~full").bind({5, 6}));
  const mask::BlockMap all(mask::parse_mask("full").bind({5, 6}));
  Example<double> example({5, 6, 1, 1, 3, 2});
  for (Index e = 0; e < 3; ++e) example.query.view().at(2, e) = example.key.view().at(4, e) = 0;
  const Matrix<double> w = random_matrix<double>(5, 2, 9);
  for (const nn::AttentionNormalizer* normalizer : nn::normalizers()) {
    CAPTURE(normalizer->name());
    for (const mask::BlockMap* blocks : {&nothing, &all}) {
      Matrix<double> d_query = Matrix<double>::zero(5, 3);
      Matrix<double> d_key = Matrix<double>::zero(6, 3);
      Matrix<double> d_value = Matrix<double>::zero(6, 2);
      nn::attention_reference_backward<double>(example.problem(*normalizer, blocks), w.view(),
                                               {d_query.view(), d_key.view(), d_value.view()});
      for (const Matrix<double>* d : {&d_query, &d_key, &d_value}) {
        for (const double x : d->span()) CHECK((blocks == &all ? std::isfinite(x) : x == 0));
      }
      if (blocks == &nothing) continue;
      for (Index e = 0; e < 3; ++e) {
        if (nn::unit_queries(*normalizer)) CHECK(d_query.view().at(2, e) == 0);
        if (nn::unit_keys(*normalizer)) CHECK(d_key.view().at(4, e) == 0);
      }
    }
  }
}

TEST_CASE("gradients are added, and those of scores are shown") {
  const Shape shape{5, 6, 1, 1, 3, 3};
  const Example<double> example(shape);
  const Matrix<double> w = random_matrix<double>(5, 3, 9);
  const nn::AttentionProblem<double> problem = example.problem(normalizer("softmax"));
  Matrix<double> d_value = Matrix<double>::zero(6, 3);
  nn::attention_reference_backward<double>(problem, w.view(), {{}, {}, d_value.view()});
  const Matrix<double> once = Matrix<double>::copy(d_value.view());
  bool shown = false;
  nn::attention_reference_backward<double>(
      problem, w.view(), {{}, {}, d_value.view()}, [&](Index, MatrixView<const double> d_scores) {
        shown = true;
        for (Index i = 0; i < 5; ++i) {
          // Softmax does not see a shift of a row.
          const auto row = d_scores.row_span(i);
          CHECK(std::abs(std::accumulate(row.begin(), row.end(), 0.0)) < 1e-14);
        }
      });
  CHECK(shown);
  for (Index i = 0; i < 18; ++i) {
    CHECK(std::abs(d_value.data()[i] - 2 * once.data()[i]) < 1e-14);
  }
}

}  // namespace
}  // namespace masque::test
