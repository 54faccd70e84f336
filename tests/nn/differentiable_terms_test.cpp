// Differentiable attention, with dropout and position terms.
#include <algorithm>
#include <array>

#include <doctest/doctest.h>

#include "nn/differentiable_example.hpp"
#include "nn/position_layer.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

/// A scheme at work on a layer, and what it adds to its gradients.
template <class T>
struct Terms {
  std::vector<Matrix<T>> gradients;
  std::vector<MatrixView<T>> views;
  std::unique_ptr<LayerProblem<T>> problem;
  std::unique_ptr<nn::PositionTerms<T>> made;

  Terms(const Layer& layer, const LayerInput<T>& in) {
    for (const Matrix<T>& p : in.parameters) {
      gradients.push_back(Matrix<T>::zero(p.rows(), p.columns()));
      views.push_back(gradients.back().view());
    }
    problem = std::make_unique<LayerProblem<T>>(layer, in);
    if constexpr (!std::is_same_v<T, Complex>) problem->problem.gradients = views;
    made = layer.scheme->terms(problem->problem);
  }
};

/// Queries, keys and values of a layer as they are, with the terms of its scheme.
template <class T>
nn::DifferentiableAttention<T> attention_of(const Layer& layer, const LayerInput<T>& in,
                                            const Terms<T>& terms, const mask::BlockMap* blocks) {
  nn::DifferentiableAttention<T> out;
  out.problem.query = in.query.view();
  out.problem.key = in.key.view();
  out.problem.value = in.value.view();
  out.problem.num_heads = out.problem.num_key_value_heads = layer.shape.num_attention_heads;
  out.problem.scale = layer.scheme->scale(layer.shape);
  out.problem.normalizer = &normalizer("log_n");
  out.problem.bias = terms.made->bias();
  out.problem.blocks = blocks;
  out.weight_terms = terms.made->weight_terms();
  out.value_terms = terms.made->value_terms();
  return out;
}

template <class T>
nn::DifferentiableGradients<T> gradients_of(Passes<T>& passes, const Terms<T>& terms) {
  return {passes.d_query.view(),       passes.d_key.view(),        passes.d_value.view(),
          terms.made->bias_gradient(), terms.made->weight_terms(), terms.made->value_terms()};
}

template <class T>
Passes<T> run_with_terms(const nn::DifferentiableAttention<T>& attention, const Terms<T>& terms) {
  Passes<T> out(attention, 9);
  run_forward(out.forward());
  nn::DifferentiableBackward<T> back = out.backward();
  back.gradients = gradients_of(out, terms);
  run_backward(back);
  return out;
}

/// The same by materialized attention.
Passes<double> define_terms(const nn::DifferentiableAttention<double>& attention,
                            const Terms<double>& terms) {
  Passes<double> out(attention, 9);
  nn::MaterializedAttention<double> general;
  general.problem = attention.problem;
  general.weight_terms = attention.weight_terms;
  general.value_terms = attention.value_terms;
  nn::MaterializedSaved<double> saved;
  nn::materialized_attention_forward(general, out.context.view(), &saved);
  nn::MaterializedGradients<double> gradients;
  gradients.query = out.d_query.view();
  gradients.key = out.d_key.view();
  gradients.value = out.d_value.view();
  gradients.bias = terms.made->bias_gradient();
  gradients.weight_terms = terms.made->weight_terms();
  gradients.value_terms = terms.made->value_terms();
  nn::materialized_attention_backward<double>(general, saved, std::as_const(out.d_context).view(),
                                              gradients);
  return out;
}

template <class T>
void check_near(const Passes<T>& found, const Terms<T>& terms, const Passes<double>& expected,
                const Terms<double>& expected_terms, double most) {
  for (std::size_t k = 0; k < 4; ++k) {
    CAPTURE(k);
    CHECK(relative_distance(*found.results()[k], *expected.results()[k]) < most);
  }
  for (std::size_t k = 0; k < terms.gradients.size(); ++k) {
    CAPTURE(k);
    CHECK(relative_distance(terms.gradients[k], expected_terms.gradients[k]) < most);
  }
}

TEST_CASE("differentiable attention takes every position scheme") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    for (const Index tokens : {1, 7, 70}) {
      CAPTURE(tokens);
      const Layer layer = layer_of(text, tokens);
      const LayerInput<double> in = smooth_input<double>(layer);
      const LayerInput<float> fast_in = smooth_input<float>(layer);
      for (const char* mask : {"full", "causal", "strict_causal"}) {
        CAPTURE(mask);
        const mask::BlockMap blocks(mask::parse_mask(mask).bind({tokens, tokens}));
        const Terms<double> expected_terms(layer, in);
        const Passes<double> expected =
            define_terms(attention_of(layer, in, expected_terms, &blocks), expected_terms);
        const Terms<double> terms(layer, in);
        check_near(run_with_terms(attention_of(layer, in, terms, &blocks), terms), terms, expected,
                   expected_terms, 1e-12);
        const Terms<float> fast(layer, fast_in);
        check_near(run_with_terms(attention_of(layer, fast_in, fast, &blocks), fast), fast,
                   expected, expected_terms, 1e-4);
      }
    }
  }
}

TEST_CASE("terms see weights and gradients in float, also with bf16") {
  for (const char* text : {"alibi", "transformer_xl", "urpe", "shaw"}) {
    CAPTURE(text);
    const Layer layer = layer_of(text, 71);
    const LayerInput<float> in = smooth_input<float>(layer);
    const Terms<float> terms(layer, in);
    nn::DifferentiableAttention<float> attention = attention_of(layer, in, terms, nullptr);
    attention.problem.bf16 = true;
    const LayerInput<double> exact_in = smooth_input<double>(layer);
    const Terms<double> exact(layer, exact_in);
    const auto expected = define_terms(attention_of(layer, exact_in, exact, nullptr), exact);
    check_near(run_with_terms(attention, terms), terms, expected, exact, 1.0 / 64);
  }
}

/// Σ w ⊙ context, as a number with its derivative.
Complex objective(const nn::DifferentiableAttention<Complex>& attention, const Matrix<double>& w) {
  Matrix<Complex> context = context_of(attention.problem);
  nn::differentiable_attention_reference(attention, context.view());
  Complex sum = 0;
  for (std::size_t i = 0; i < w.span().size(); ++i) sum += w.span()[i] * context.span()[i];
  return sum;
}

TEST_CASE("dropout: gradients are those of the forward pass with the same factors") {
  constexpr double kStep = 1e-40;
  for (const char* text : {"none", "alibi", "t5", "transformer_xl", "urpe", "shaw"}) {
    CAPTURE(text);
    const Layer layer = layer_of(text, 9);
    const LayerInput<double> in = smooth_input<double>(layer);
    LayerInput<Complex> steps = smooth_input<Complex>(layer);
    const mask::BlockMap blocks(mask::parse_mask("causal").bind({9, 9}));
    const Terms<double> terms(layer, in);
    nn::DifferentiableAttention<double> attention = attention_of(layer, in, terms, &blocks);
    attention.dropout = 0.3;
    attention.stream = RandomStream(4, "dropout", 7);
    const Passes<double> found = run_with_terms(attention, terms);
    Matrix<double> context = context_of(attention.problem);
    nn::differentiable_attention_reference(attention, context.view());
    CHECK(relative_distance(found.context, context) < 1e-13);
    std::vector<Matrix<Complex>*> inputs = {&steps.query, &steps.key, &steps.value};
    std::vector<const Matrix<double>*> gradients = {&found.d_query, &found.d_key, &found.d_value};
    for (std::size_t k = 0; k < terms.gradients.size(); ++k) {
      inputs.push_back(&steps.parameters[k]);
      gradients.push_back(&terms.gradients[k]);
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      CAPTURE(k);
      for (std::size_t i = 0; i < inputs[k]->span().size(); ++i) {
        Complex& x = inputs[k]->span()[i];
        x += Complex(0, kStep);
        const Terms<Complex> moved(layer, steps);
        nn::DifferentiableAttention<Complex> stepped = attention_of(layer, steps, moved, &blocks);
        stepped.dropout = attention.dropout;
        stepped.stream = attention.stream;
        const double expected = objective(stepped, found.d_context).imag() / kStep;
        x = x.real();
        CHECK(std::abs(gradients[k]->span()[i] - expected) < 1e-12 * (1 + std::abs(expected)));
      }
    }
  }
}

TEST_CASE("dropout keeps the mean, and drops by its number") {
  const Shape shape{100, 100, 4, 2, 4, 4};
  Example<float> example(shape);
  std::ranges::fill(example.value.span(), 1.0F);
  std::ranges::fill(example.query.span(), 0.0F);
  nn::DifferentiableAttention<float> attention{example.problem(normalizer("softmax"))};
  attention.dropout = 0.25;
  attention.stream = RandomStream(1, "dropout");
  const Passes<float> found = run_passes(attention);
  double sum = 0;
  for (const float x : found.context.span()) sum += static_cast<double>(x);
  const double mean = sum / static_cast<double>(found.context.span().size());
  // 40,000 weights of 1 / 100, each 0 or 4 / 3 times that.
  CHECK(std::abs(mean - 1) < 4 * std::sqrt(0.25 / 0.75 / 40000));
  // What is kept is a whole number of equal weights, and rows differ.
  const float unit = 1.0F / 75;
  const float kept = found.context.view().at(0, 0) / unit;
  CHECK(std::abs(kept - std::round(kept)) < 1e-3F);
  CHECK(found.context.view().at(0, 0) != found.context.view().at(1, 0));
  attention.stream = RandomStream(2, "dropout");
  CHECK(distance(run_passes(attention).context, found.context) > 0.01);
}

TEST_CASE("sequences that share trained terms add to their gradients in order") {
  const Layer layer = layer_of("t5", 70);
  const LayerInput<float> in = smooth_input<float>(layer);
  const Terms<float> terms(layer, in);
  const nn::DifferentiableAttention<float> attention = attention_of(layer, in, terms, nullptr);
  Passes<float> a(attention, 9);
  Passes<float> b(attention, 10);
  const auto run = [&](bool together) {
    for (Passes<float>* t : {&a, &b}) run_forward(t->forward());
    std::array<nn::DifferentiableBackward<float>, 2> back = {a.backward(), b.backward()};
    back[0].gradients = gradients_of(a, terms);
    back[1].gradients = gradients_of(b, terms);
    if (together) return nn::differentiable_attention_backward<float>(back);
    for (const auto& one : back) run_backward(one);
  };
  run(false);
  const Matrix<float> once = Matrix<float>::copy(terms.gradients[0].view());
  for (Index i = 0; i < once.rows(); ++i) std::ranges::fill(terms.views[0].row_span(i), 0.0F);
  run(true);
  CHECK(std::ranges::equal(once.span(), terms.gradients[0].span()));
  CHECK(std::ranges::any_of(once.span(), [](float x) { return x != 0; }));
}

}  // namespace
}  // namespace masque::test
