// What must hold for every position scheme of the registry.
#include <algorithm>

#include <doctest/doctest.h>

#include "nn/position_layer.hpp"

namespace masque::test {
namespace {

using Complex = std::complex<double>;

Complex objective(const Layer& layer, const LayerInput<Complex>& in, const Matrix<double>& w) {
  const Matrix<Complex> context = layer_context(layer, in);
  Complex sum = 0;
  for (Index i = 0; i < context.rows() * context.columns(); ++i) {
    sum += w.data()[i] * context.data()[i];
  }
  return sum;
}

/// The relative error of `found` along random directions, against a complex step.
double worst(const Layer& layer, const Matrix<double>& w, LayerInput<Complex>& in,
             Matrix<Complex>& x, const Matrix<double>& found) {
  constexpr double kStep = 1e-40;
  double most = 0;
  for (std::uint64_t seed = 30; seed < 33; ++seed) {
    const Matrix<double> direction = random_matrix<double>(x.rows(), x.columns(), seed);
    double along = 0;
    for (Index i = 0; i < x.rows() * x.columns(); ++i) {
      along += direction.data()[i] * found.data()[i];
      x.data()[i] += Complex(0, kStep * direction.data()[i]);
    }
    const double expected = objective(layer, in, w).imag() / kStep;
    for (Complex& number : x.span()) number = number.real();
    const double error = std::abs(along - expected) / (1 + std::abs(expected));
    if (!(error <= most)) most = error;
  }
  return most;
}

void check_gradients(Layer& layer) {
  const Matrix<double> w = random_matrix<double>(layer.tokens(), 6, 9);
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    layer.causal = causal;
    LayerInput<Complex> steps = smooth_input<Complex>(layer);
    LayerInput<double> gradients = layer_gradients(layer, smooth_input<double>(layer), w);
    for (std::size_t k = 0; k < steps.all().size(); ++k) {
      CAPTURE(k);
      CHECK(worst(layer, w, steps, *steps.all()[k], *gradients.all()[k]) < 1e-11);
    }
  }
}

TEST_CASE("gradients of input, queries, keys, values and parameters, for every position scheme") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    for (const Index tokens : {1, 7, 10}) {
      CAPTURE(tokens);
      Layer layer = layer_of(text, tokens);
      check_gradients(layer);
    }
    Layer apart = layer_of(text);
    apart.positions = {0, 3, 4, 11, 40, 41, 300};
    check_gradients(apart);
  }
}

TEST_CASE("materialized attention takes every scheme: the same contexts and gradients") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    for (const bool causal : {false, true}) {
      Layer layer = layer_of(text);
      layer.causal = causal;
      const LayerInput<double> in = smooth_input<double>(layer);
      const Matrix<double> w = random_matrix<double>(7, 6, 9);
      Matrix<double> context(7, 6);
      LayerInput<double> expected = layer_gradients(layer, in, w);
      LayerInput<double> found = layer_gradients(layer, in, w, &context);
      CHECK(distance(context, layer_context(layer, in)) < 1e-13);
      for (std::size_t k = 0; k < expected.all().size(); ++k) {
        CAPTURE(k);
        CHECK(distance(*found.all()[k], *expected.all()[k]) < 1e-12);
      }
    }
  }
}

TEST_CASE("parameters that are trained have gradients, and unwanted ones are left out") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    const Layer layer = layer_of(text);
    const LayerInput<double> in = smooth_input<double>(layer);
    const Matrix<double> w = random_matrix<double>(7, 6, 9);
    const LayerInput<double> all = layer_gradients(layer, in, w);
    for (const Matrix<double>& d : all.parameters) {
      CHECK(std::any_of(d.span().begin(), d.span().end(), [](double x) { return x != 0; }));
    }
    // Without gradients of parameters those of queries and keys are the same.
    const LayerProblem<double> problem(layer, in);
    const auto terms = layer.scheme->terms(problem.problem);
    LayerSaved<double> saved;
    layer_forward(layer, in, *terms, saved);
    if (terms->bias_gradient() != nullptr) {
      Matrix<double> d_query = Matrix<double>::zero(7, 4);
      Matrix<double> d_key = Matrix<double>::zero(7, 4);
      const auto q = head_part<const double>(saved.query.view(), 1, 2);
      const auto k = head_part<const double>(saved.key.view(), 1, 2);
      const Matrix<double> d = random_matrix<double>(7, 7, 8);
      terms->bias_gradient()->backward(1, q, k, d.view(), d_query.view(), d_key.view());
      Matrix<double> again = Matrix<double>::zero(7, 4);
      terms->bias_gradient()->backward(1, q, k, d.view(), again.view(), {});
      CHECK(distance(again, d_query) == 0);
    }
    Matrix<double> d_x = random_matrix<double>(7, 8, 8);
    terms->input_backward(in.x.view(), d_x.view());
  }
}

TEST_CASE_TEMPLATE("positions of any size and number are served", T, float, double) {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    for (const std::vector<Index>& positions : {std::vector<Index>{0},
                                                {17},
                                                {5, 6, 7},
                                                {0, 4, 15, 16, 17, 63, 64},
                                                {0, 20000, 3},
                                                {9, 9, 2, 2}}) {
      Layer layer = layer_of(text, std::ssize(positions));
      layer.positions = positions;
      layer.causal = true;
      const Matrix<T> context = layer_context(layer, smooth_input<T>(layer));
      CHECK(std::all_of(context.span().begin(), context.span().end(),
                        [](T x) { return std::isfinite(x); }));
    }
  }
}

TEST_CASE("float is double but for rounding") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    const Layer layer = layer_of(text);
    CHECK(distance(layer_context(layer, smooth_input<float>(layer)),
                   layer_context(layer, smooth_input<double>(layer))) < 2e-4);
  }
}

TEST_CASE("a shift of all positions changes nothing for relative schemes alone") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    Layer here = layer_of(text);
    here.draw.reset();
    here.causal = true;
    Layer there = here;
    const bool relative = here.scheme->facts().relative;
    // Products of small positions are not rounded to bfloat16.
    const Index shift = relative || text.find("bf16") != std::string::npos ? 1000 : 3;
    for (Index& position : there.positions) position += shift;
    const double moved = distance(layer_context(here, smooth_input<double>(here)),
                                  layer_context(there, smooth_input<double>(there)));
    if (relative) {
      CHECK(moved < 1e-10);
    } else {
      CHECK(moved > 1e-5);
    }
  }
}

/// The same row for all tokens.
void repeat_rows(Matrix<double>& x) {
  for (Index i = 1; i < x.rows(); ++i) std::copy_n(x.data(), x.columns(), x.view().row(i));
}

LayerInput<double> equal_tokens(const Layer& layer) {
  LayerInput<double> in = smooth_input<double>(layer);
  for (Matrix<double>* x : {&in.x, &in.query, &in.key, &in.value}) repeat_rows(*x);
  return in;
}

TEST_CASE("equal keys on the left and on the right have equal weights, or not, as stated") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    Layer layer = layer_of(text, 3);
    layer.draw.reset();
    layer.segments.clear();
    LayerSaved<double> saved;
    layer_context(layer, equal_tokens(layer), &saved);
    double most = 0;
    for (const Matrix<double>& a : saved.weights) {
      most = std::max(most, std::abs(a.view().at(1, 0) - a.view().at(1, 2)));
    }
    if (layer.scheme->facts().direction_aware) {
      CHECK(most > 1e-6);
    } else {
      CHECK(most < 1e-14);
    }
  }
}

/// How far contexts of different tokens are apart.
double spread(const Layer& layer, const LayerInput<double>& in) {
  const Matrix<double> context = layer_context(layer, in);
  double most = 0;
  for (Index i = 0; i < context.rows(); ++i) {
    for (Index e = 0; e < context.columns(); ++e) {
      most = std::max(most, std::abs(context.view().at(i, e) - context.view().at(0, e)));
    }
  }
  return most;
}

TEST_CASE("the position probe: what acts on scores alone says nothing about equal tokens") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    const nn::PositionFacts facts = nn::parse_position(text)->facts();
    const bool says = facts.input || facts.weights || facts.values;
    for (const bool causal : {false, true}) {
      CAPTURE(causal);
      Layer layer = layer_of(text);
      layer.causal = causal;
      LayerInput<double> in = equal_tokens(layer);
      if (says) {
        CHECK(spread(layer, in) > 1e-3);
      } else {
        CHECK(spread(layer, in) < 1e-12);
      }
      // Input of zeros: what multiplies it has nothing to multiply.
      std::fill(in.x.span().begin(), in.x.span().end(), 0.0);
      const std::string& name = layer.scheme->name();
      const bool multiplies =
          name == "multiplicative" || name == "complex_order" || name == "convolutional";
      if (says && !multiplies) {
        CHECK(spread(layer, in) > 1e-3);
      } else {
        CHECK(spread(layer, in) < 1e-12);
      }
    }
  }
}

TEST_CASE("schemes act where they say, and look ahead only if they ask for every key") {
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    Layer layer = layer_of(text);
    const nn::PositionFacts facts = layer.scheme->facts();
    LayerInput<double> in = random_input<double>(layer, true);
    const LayerProblem<double> problem(layer, in);
    const auto terms = layer.scheme->terms(problem.problem);
    LayerSaved<double> saved;
    layer_forward(layer, in, *terms, saved);
    CHECK(facts.input == (distance(saved.moved, in.x) > 0));
    CHECK(facts.query_key ==
          (distance(saved.query, projected(layer, saved.moved, in.query, 20)) > 0));
    CHECK(facts.scores == (terms->bias() != nullptr));
    CHECK(facts.scores == (terms->bias_gradient() != nullptr));
    CHECK(facts.weights == (terms->weight_terms() != nullptr));
    CHECK(facts.values == (terms->value_terms() != nullptr));

    Matrix<double> other = Matrix<double>::copy(in.x.view());
    for (double& x : other.view().row_span(6)) x += 1;
    terms->input(other.view());
    const double moved = distance(Matrix<double>::copy(other.view().middle_rows(0, 6)),
                                  Matrix<double>::copy(saved.moved.view().middle_rows(0, 6)));
    CHECK((layer.scheme->facts().masks == nn::MaskSupport::kFull) == (moved > 0));
  }
}

TEST_CASE("odd sizes are refused where pairs are rotated, and nowhere else") {
  for (const std::string& text : nn::position_names()) {
    CAPTURE(text);
    Layer layer = layer_of(text);
    layer.shape = {7, 2, 3, 3, 4};
    const LayerInput<double> in = random_input<double>(layer, true);
    const LayerProblem<double> problem(layer, in);
    const bool refuses = text.find("rope") != std::string::npos || text == "xpos" ||
                         text == "randomized" || text == "equal_mean" || text == "sinusoidal" ||
                         text == "xlnet" || text == "transformer_xl" || text == "complex_order";
    if (refuses) {
      CHECK_THROWS_AS(layer.scheme->terms(problem.problem), UsageError);
    } else {
      CHECK(layer.scheme->terms(problem.problem) != nullptr);
    }
  }
}

TEST_CASE("every scheme is a row of the variants, with all its parameters") {
  std::vector<std::string> rows;
  for (const nn::VariantInfo& info : nn::variants()) {
    if (info.kind != "position") continue;
    CAPTURE(info.name);
    rows.push_back(info.name);
    CHECK((info.masks == "any" || info.masks == "full, causal" || info.masks == "full"));
    CHECK(info.exact);
    CHECK_FALSE(info.cost.empty());
    CHECK_FALSE(info.source.empty());
    for (const nn::PositionParameter& p :
         nn::parse_position(info.name)->parameters(Layer("none").shape)) {
      CHECK(info.parameters.find(p.name) != std::string::npos);
    }
  }
  CHECK(rows == nn::position_names());
  CHECK(rows.size() == 29);
  CHECK(nn::position_info("rope_pi").parameters == "layout=adjacent, base=10000, factor=8");
  CHECK(nn::position_info("shaw").parameters ==
        "clip=16; trained keys (2 clip + 1, head size), values (2 clip + 1, value size)");
}

TEST_CASE("parameters start as stated, the same for a seed") {
  const nn::PositionShape shape = Layer("none").shape;
  for (const std::string& text : spellings()) {
    CAPTURE(text);
    const auto scheme = nn::parse_position(text);
    const auto first = nn::start_position<double>(*scheme, shape, 1);
    const auto again = nn::start_position<double>(*scheme, shape, 1);
    const std::vector<nn::PositionParameter> parameters = scheme->parameters(shape);
    REQUIRE(first.size() == parameters.size());
    for (std::size_t k = 0; k < first.size(); ++k) {
      CHECK(first[k].rows() == parameters[k].rows);
      CHECK(first[k].columns() == parameters[k].columns);
      CHECK(distance(first[k], again[k]) == 0);
      if (parameters[k].deviation > 0) {
        CHECK(distance(first[k], nn::start_position<double>(*scheme, shape, 2)[k]) > 0);
      }
    }
  }
  const auto urpe = nn::start_position<double>(*nn::parse_position("urpe"), shape, 1);
  CHECK(std::all_of(urpe[0].span().begin(), urpe[0].span().end(), [](double x) { return x == 1; }));
  const auto started = nn::start_position<double>(*nn::parse_position("complex_order"), shape, 1);
  CHECK(started[0].view().at(0, 1) == doctest::Approx(0.1));
}

TEST_CASE("what is no position scheme is refused, with what there is") {
  const auto error = [](std::string_view text) -> std::string {
    try {
      nn::parse_position(text);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "accepted";
  };
  CHECK(error("rotary").starts_with("there is no position scheme 'rotary', only alibi, "));
  CHECK(error("rope(factor=2)") == "rope has no parameter 'factor', only layout, base");
  CHECK(error("none(clip=2)") == "none has no parameter 'clip', nor any other");
  CHECK(error("rope_pi(factor=0.5)") ==
        "rope_pi: factor is '0.5', expected a number from 1 to 1000000");
  CHECK(error("t5(buckets=7)").ends_with("expected an even number with bidirectional=true"));
  CHECK(error("convolutional(width=4)").ends_with("expected an odd width or causal=true"));
  CHECK(error("deberta(position_buckets=1)") ==
        "deberta: position_buckets is 1, expected 0 or at least 2");
  CHECK(error("sandwich(size=5)") == "sandwich: size is 5, expected an even number");
  CHECK(error("randomized(scheme=randomized)") ==
        "randomized: the inner scheme is randomized too, expected another scheme");
  CHECK(error("randomized(scheme=rotary)").starts_with("there is no position scheme 'rotary'"));
  CHECK(nn::parse_position("rope_yarn(factor=8,length=512)")->name() == "rope_yarn");
}

}  // namespace
}  // namespace masque::test
