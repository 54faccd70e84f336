// The terms of distance of Transformer-XL, which XLNet shares.
#pragma once

#include <vector>

#include "nn/position/distances.hpp"
#include "nn/position/pair_tables.hpp"

namespace masque::nn {

/// What transformer_xl trains: relative (hidden_size, heads · head size), content_bias u and
/// position_bias v (1, heads · head size).
inline std::vector<PositionParameter> transformer_xl_parameters(const PositionShape& shape) {
  const Index width = shape.num_attention_heads * shape.head_size;
  return {{"relative", shape.hidden_size, width, 0, 0.02, {}},
          {"content_bias", 1, width, 0, 0.02, {}},
          {"position_bias", 1, width, 0, 0.02, {}}};
}

/// scale · (u·k_j + (q_i + v)·W R_{i−j}), from parameters 0 … 2 of the problem. R sinusoidal, sines
/// before cosines. Memory: a row of hidden_size and one of all heads for each distance.
template <class T>
PairTables<T> transformer_xl_tables(const PositionProblem<T>& problem, double scale) {
  const PositionShape& shape = problem.shape;
  auto distances = std::make_shared<const Distances>(problem.places);
  const std::vector<double> places(distances->values().begin(), distances->values().end());
  auto waves = std::make_shared<Matrix<T>>(std::ssize(places), shape.hidden_size);
  sinusoidal_table<T>(places, false, waves->view());
  PairTables<T> tables;
  tables.scale = scale;
  tables.row = [distances, at = problem.places](Index i, Index j) {
    return distances->row(at.queries[static_cast<std::size_t>(i)] -
                          at.keys[static_cast<std::size_t>(j)]);
  };
  tables.by_query = product_of<T>(std::as_const(*waves).view(), problem.parameters[0]);
  tables.content_bias = problem.parameters[1];
  tables.query_bias = problem.parameters[2];
  tables.d_content_bias = gradient_of(problem, 1);
  tables.d_query_bias = gradient_of(problem, 2);
  tables.push = [waves, relative = problem.parameters[0], d_relative = gradient_of(problem, 0),
                 size = shape.head_size](Index head, MatrixView<const T> d_by_query,
                                         MatrixView<const T> /*d_by_key*/) {
    add_product_gradients<T>(std::as_const(*waves).view(), head_columns(relative, head, size),
                             d_by_query, {}, head_columns(d_relative, head, size));
  };
  return tables;
}

}  // namespace masque::nn
