// Gradients against complex steps: Im f(x + ih) / h is the derivative, without cancellation.
#include <numeric>

#include <doctest/doctest.h>

#include "nn/attention_gradients.hpp"
#include "nn/example.hpp"
#include "nn/position.hpp"

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
  std::vector<Index> places(7);
  std::iota(places.begin(), places.end(), 0);
  const auto bias = nn::alibi_bias<double>(4, {places, places});
  const auto complex_bias = nn::alibi_bias<Complex>(4, {places, places});
  for (const char* text :
       {"full", "causal", "strict_causal", "tta", "window(1)", "random(0.4,2)"}) {
    CAPTURE(text);
    const BlockMap blocks(parse_mask(text).bind({7, 7}));
    for (const nn::Normalizer* normalizer : nn::normalizers()) {
      CAPTURE(normalizer->name());
      for (const bool with_bias : {false, true}) {
        nn::AttentionProblem<double> problem = example.problem(*normalizer, &blocks);
        nn::AttentionProblem<Complex> complex_problem = steps.problem(*normalizer, &blocks);
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
