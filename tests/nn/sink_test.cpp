// Sinks of attention: every evaluation and the passes of training against the definition, and
// gradients against complex steps.
#include <complex>

#include <doctest/doctest.h>

#include "nn/differentiable_example.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

constexpr double kStep = 1e-30;
constexpr Shape kShape{70, 70, 4, 2, 6, 5};

/// Small, usual and large scores, so that the sink is the shift of a row and is not.
template <class T>
std::vector<T> sinks_of() {
  return {T(-3), T(0.5), T(2), T(60)};
}

/// Σ of `d_context` ⊙ the context of `example`, with `sinks`.
Complex loss(const Example<Complex>& example, const mask::BlockMap* blocks,
             std::span<const Complex> sinks, MatrixView<const double> d_context) {
  auto problem = example.problem(normalizer("softmax"), blocks);
  problem.sinks = sinks;
  const Matrix<Complex> context = define(problem);
  Complex sum = 0;
  for (Index i = 0; i < d_context.rows; ++i) {
    for (Index c = 0; c < d_context.columns; ++c)
      sum += d_context.at(i, c) * context.view().at(i, c);
  }
  return sum;
}

TEST_CASE("a sink is a key whose value is 0") {
  // Its score is that of keys of zeros: 0.
  const Shape more{70, 71, 2, 1, 6, 5};
  Example<double> example(more);
  for (double& x : example.key.view().row_span(70)) x = 0;
  for (double& x : example.value.view().row_span(70)) x = 0;
  auto with_key = example.problem(normalizer("softmax"));
  auto with_sink = with_key;
  with_sink.key = with_key.key.middle_rows(0, 70);
  with_sink.value = with_key.value.middle_rows(0, 70);
  const std::vector<double> sinks(2, 0.0);
  with_sink.sinks = sinks;
  CHECK(distance(define(with_sink), define(with_key)) < 1e-15);
}

TEST_CASE("every evaluation and the passes of training have sinks as the definition, by any mask") {
  const Example<double> exact(kShape);
  const Example<float> fast(kShape);
  const auto sinks = sinks_of<double>();
  const auto float_sinks = sinks_of<float>();
  for (const char* mask : {"full", "causal", "strict_causal", "causal & window(5)"}) {
    CAPTURE(mask);
    const mask::BlockMap blocks(mask::parse_mask(mask).bind({70, 70}));
    auto problem = exact.problem(normalizer("softmax"), &blocks);
    auto in_float = fast.problem(normalizer("softmax"), &blocks);
    const Matrix<double> without = define(problem);
    problem.sinks = sinks;
    in_float.sinks = float_sinks;
    const Matrix<double> expected = define(problem);
    CHECK(distance(without, expected) > 0.1);
    for (const nn::AttentionEvaluation& evaluation : nn::attention_evaluations()) {
      CAPTURE(evaluation.name);
      CHECK(distance(evaluate(evaluation, problem), expected) < 1e-13);
      CHECK(distance(evaluate(evaluation, in_float), expected) < 1e-5);
    }
    CHECK(distance(run_passes<double>({problem}).context, expected) < 1e-13);
    CHECK(distance(run_passes<float>({in_float}).context, expected) < 1e-5);
  }
}

TEST_CASE("gradients with sinks are those of complex steps") {
  const Example<double> example(kShape);
  const auto sinks = sinks_of<double>();
  const mask::BlockMap blocks(mask::parse_mask("strict_causal").bind({70, 70}));
  auto problem = example.problem(normalizer("softmax"), &blocks);
  problem.sinks = sinks;
  Passes<double> passes = run_passes<double>({problem});
  std::vector<double> d_sinks(4, 0.25);
  nn::add_sink_gradients<double>(passes.backward(), d_sinks);
  const auto by = [&](auto change) {
    Example<Complex> steps(kShape);
    std::vector<Complex> stepped = sinks_of<Complex>();
    change(steps, stepped);
    return loss(steps, &blocks, stepped, passes.d_context.view()).imag() / kStep;
  };
  for (std::size_t h = 0; h < 4; ++h) {
    CAPTURE(h);
    const double expected =
        by([&](auto&, std::vector<Complex>& all) { all[h] += Complex(0, kStep); });
    CHECK(std::abs(d_sinks[h] - 0.25 - expected) < 1e-12);
  }
  for (const Index place : {0, 33, 69}) {
    CAPTURE(place);
    const auto step = [&](Matrix<Complex>& x) { x.view().at(place, 2) += Complex(0, kStep); };
    CHECK(std::abs(passes.d_query.view().at(place, 2) -
                   by([&](auto& e, auto&) { step(e.query); })) < 1e-12);
    CHECK(std::abs(passes.d_key.view().at(place, 2) - by([&](auto& e, auto&) { step(e.key); })) <
          1e-12);
    CHECK(std::abs(passes.d_value.view().at(place, 2) -
                   by([&](auto& e, auto&) { step(e.value); })) < 1e-12);
  }
}

}  // namespace
}  // namespace masque::test
