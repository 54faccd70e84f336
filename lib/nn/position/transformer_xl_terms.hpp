// The terms of distance of Transformer-XL, which XLNet shares.
#pragma once

#include <utility>
#include <vector>

#include "nn/position/distances.hpp"
#include "nn/position/plain_products.hpp"
#include "nn/position/score_terms.hpp"

namespace masque::nn {

/// What transformer_xl trains for `shape`: relative (hidden_size, heads · head size), content_bias
/// u and position_bias v (1, heads · head size).
inline std::vector<PositionParameter> transformer_xl_parameters(const PositionShape& shape) {
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

}  // namespace masque::nn
