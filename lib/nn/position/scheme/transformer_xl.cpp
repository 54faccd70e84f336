// transformer_xl and xlnet: queries times projected sines of the distance.
#include <complex>
#include <utility>
#include <vector>

#include "nn/position/distances.hpp"
#include "nn/position/plain_products.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::nn {

namespace {

// The terms of distance of Transformer-XL, which XLNet shares.

/// What transformer_xl trains for `shape`: relative (hidden_size, heads · head size), content_bias
/// u and position_bias v (1, heads · head size).
std::vector<PositionParameter> transformer_xl_parameters(const PositionShape& shape) {
  const Index width = shape.num_attention_heads * shape.head_size;
  return {{"relative", shape.hidden_size, width, 0, 0.02, {}},
          {"content_bias", 1, width, 0, 0.02, {}},
          {"position_bias", 1, width, 0, 0.02, {}}};
}

/// The terms of distance times `scale`, from parameters 0 … 2 of `problem`, which is
/// borrowed; R sinusoidal, sines before cosines. Memory: a row of hidden_size and one of
/// all heads for each distance.
template <class T>
XlnetTerms<T> transformer_xl_terms(const PositionProblem<T>& problem, double scale) {
  const PositionShape& shape = problem.shape;
  const auto distances = std::make_shared<const Distances>(problem.positions);
  const std::vector<double> positions(distances->values().begin(), distances->values().end());
  struct Projected {
    Matrix<T> waves, rows;
  };
  const auto made = std::make_shared<Projected>();
  made->waves = Matrix<T>(std::ssize(positions), shape.hidden_size);
  sinusoidal_table<T>(positions, false, made->waves.view());
  made->rows = product_of<T>(std::as_const(made->waves).view(), problem.parameters[0]);
  XlnetTerms<T> terms;
  terms.relative = std::as_const(made->rows).view();
  terms.row = [distances](Index distance) { return distances->row(distance); };
  terms.content_bias = problem.parameters[1];
  terms.position_bias = problem.parameters[2];
  terms.scale = scale;
  terms.d_content_bias = gradient_of(problem, 1);
  terms.d_position_bias = gradient_of(problem, 2);
  terms.projected.memory = made;
  terms.projected.push = [waves = std::as_const(made->waves).view(),
                          relative = problem.parameters[0], d_relative = gradient_of(problem, 0),
                          size = shape.head_size](Index head, MatrixView<const T> d_by_query,
                                                  MatrixView<const T> /*d_by_key*/) {
    add_product_gradients<T>(waves, head_columns(relative, head, size), d_by_query, {},
                             head_columns(d_relative, head, size));
  };
  return terms;
}

/// transformer_xl: queries times projected sines of the distance, and two trained vectors that
/// stand for the query where a score does not depend on it.
class TransformerXl final : public PositionSchemeOf<TransformerXl> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("relative (hidden_size, d), content_bias (d), position_bias (d)",
                             "n² d + 2 n d²", "Dai et al. 2019, arXiv:1901.02860");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return transformer_xl_parameters(shape);
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    require_even(name(), "hidden_size", problem.shape.hidden_size);
    return xlnet_terms<T>(transformer_xl_terms(problem, scale(problem.shape)), problem.positions);
  }
};

const PositionRegistration kTransformerXlRegistration(
    "transformer_xl", [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<TransformerXl>();
    });

/// xlnet: transformer_xl, and a term of whether query and key are of the same segment.
class Xlnet final : public PositionSchemeOf<Xlnet> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.scores = true;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position(
        "relative (hidden_size, d), content_bias (d), position_bias (d), segment_bias (d), "
        "segment_table (2, d)",
        "2 n² d + 2 n d²", "Yang et al. 2019, arXiv:1906.08237");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    const Index width = shape.num_attention_heads * shape.head_size;
    std::vector<PositionParameter> all = transformer_xl_parameters(shape);
    all.push_back({"segment_bias", 1, width, 0, 0.02, {}});
    all.push_back({"segment_table", 2, width, 0, 0.02, {}});
    return all;
  }

  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    require_even(name(), "hidden_size", problem.shape.hidden_size);
    XlnetTerms<T> terms = transformer_xl_terms(problem, scale(problem.shape));
    terms.segment_bias = problem.parameters[3];
    terms.segment_table = problem.parameters[4];
    terms.query_segments = problem.query_segments;
    terms.key_segments = problem.key_segments;
    terms.d_segment_bias = gradient_of(problem, 3);
    terms.d_segment_table = gradient_of(problem, 4);
    return xlnet_terms<T>(terms, problem.positions);
  }
};

const PositionRegistration kXlnetRegistration(
    "xlnet",
    [](NamedArguments&) -> std::unique_ptr<PositionScheme> { return std::make_unique<Xlnet>(); });

}  // namespace

}  // namespace masque::nn
