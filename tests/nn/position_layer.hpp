// One layer of attention with a position scheme, in plain loops, forward and backward: every
// position where a scheme can act.
#pragma once

#include <cmath>
#include <complex>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "nn/example.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::test {

/// A scheme, where its tokens stand, and who may read whom.
struct Layer {
  std::shared_ptr<const nn::PositionScheme> scheme;
  std::vector<Index> positions;
  bool causal = false;
  std::vector<Index> segments;
  std::optional<std::uint64_t> draw;
  nn::PositionShape shape{8, 2, 4, 3, 4};

  explicit Layer(std::string_view text, Index tokens = 7) : scheme(nn::parse_position(text)) {
    positions.resize(static_cast<std::size_t>(tokens));
    std::iota(positions.begin(), positions.end(), 0);
  }
  Index tokens() const { return static_cast<Index>(positions.size()); }
};

/// What goes in: x, and what is added to the projections of x', so that gradients of queries, keys
/// and values can be seen.
template <class T>
struct LayerInput {
  Matrix<T> x, query, key, value;
  std::vector<Matrix<T>> parameters;

  std::vector<Matrix<T>*> all() {
    std::vector<Matrix<T>*> list = {&x, &query, &key, &value};
    for (Matrix<T>& p : parameters) list.push_back(&p);
    return list;
  }
};

/// Random numbers everywhere; parameters are positive where `positive`.
template <class T>
LayerInput<T> random_input(const Layer& layer, bool positive = false) {
  const nn::PositionShape& s = layer.shape;
  const Index heads = s.num_attention_heads;
  LayerInput<T> in{random_matrix<T>(layer.tokens(), s.hidden_size, 1),
                   random_matrix<T>(layer.tokens(), heads * s.head_size, 2),
                   random_matrix<T>(layer.tokens(), heads * s.head_size, 3),
                   random_matrix<T>(layer.tokens(), heads * s.value_size, 4),
                   {}};
  std::uint64_t seed = 10;
  for (const nn::PositionParameter& p : layer.scheme->parameters(s)) {
    Matrix<T>& made = in.parameters.emplace_back(random_matrix<T>(p.rows, p.columns, seed++, 0.5));
    if (!positive) continue;
    for (T& number : made.span()) number = static_cast<T>(0.2 + std::abs(number));
  }
  return in;
}

/// Random numbers for which the scheme is smooth.
template <class T>
LayerInput<T> smooth_input(const Layer& layer) {
  return random_input<T>(layer, layer.scheme->name().starts_with("kerple"));
}

template <class T>
struct LayerSaved {
  Matrix<T> moved, query, key, value;            ///< x', and what meets in scores
  std::vector<Matrix<T>> scores, soft, weights;  ///< of each head; softmax before its factor
};

template <class T>
MatrixView<T> head_part(MatrixView<T> x, Index head, Index heads) {
  return x.middle_columns(head * (x.columns / heads), x.columns / heads);
}

/// The projections are the same for every layer.
inline Matrix<double> projection(const Layer& layer, Index columns, std::uint64_t seed) {
  return random_matrix<double>(layer.shape.hidden_size, columns, seed, 0.4);
}

template <class T>
Matrix<T> projected(const Layer& layer, const Matrix<T>& x, const Matrix<T>& added,
                    std::uint64_t seed) {
  const Matrix<double> map = projection(layer, added.columns(), seed);
  Matrix<T> out = Matrix<T>::copy(added.view());
  for (Index i = 0; i < x.rows(); ++i) {
    for (Index d = 0; d < x.columns(); ++d) {
      for (Index e = 0; e < out.columns(); ++e) {
        out.view().at(i, e) += x.view().at(i, d) * static_cast<T>(map.view().at(d, e));
      }
    }
  }
  return out;
}

template <class T>
struct LayerProblem {
  std::vector<MatrixView<const T>> parameters;
  nn::PositionProblem<T> problem;
  LayerProblem(const Layer& layer, const LayerInput<T>& in) {
    for (const Matrix<T>& p : in.parameters) parameters.push_back(p.view());
    problem.shape = layer.shape;
    problem.positions = {layer.positions, layer.positions};
    problem.parameters = parameters;
    problem.query_segments = problem.key_segments = layer.segments;
    problem.draw = layer.draw;
  }
};

/// Softmax of the keys that a query may read; the others get 0.
template <class T>
void softmax_row(const Layer& layer, Index query, std::span<T> row) {
  using std::exp;
  const Index keys = layer.causal ? query + 1 : static_cast<Index>(row.size());
  double most = -HUGE_VAL;
  for (Index j = 0; j < keys; ++j) {
    most = std::max(most, nn::reference::real_part(row[static_cast<std::size_t>(j)]));
  }
  T sum{};
  for (Index j = 0; j < static_cast<Index>(row.size()); ++j) {
    T& a = row[static_cast<std::size_t>(j)];
    a = j < keys ? exp(a - static_cast<T>(most)) : T{};
    sum += a;
  }
  for (T& a : row) a /= sum;
}

/// context (T, heads · value size).
template <class T>
Matrix<T> layer_forward(const Layer& layer, const LayerInput<T>& in, nn::PositionTerms<T>& terms,
                        LayerSaved<T>& saved) {
  const Index heads = layer.shape.num_attention_heads;
  const Index n = layer.tokens();
  const T scale = static_cast<T>(layer.scheme->scale(layer.shape));
  saved.moved = Matrix<T>::copy(in.x.view());
  terms.input(saved.moved.view());
  saved.query = projected(layer, saved.moved, in.query, 20);
  saved.key = projected(layer, saved.moved, in.key, 21);
  saved.value = projected(layer, saved.moved, in.value, 22);
  terms.query_key(saved.query.view(), saved.key.view());
  Matrix<T> context = Matrix<T>::zero(n, saved.value.columns());
  for (Index h = 0; h < heads; ++h) {
    const auto q = head_part<const T>(saved.query.view(), h, heads);
    const auto k = head_part<const T>(saved.key.view(), h, heads);
    const auto v = head_part<const T>(saved.value.view(), h, heads);
    Matrix<T>& s = saved.scores.emplace_back(Matrix<T>::zero(n, n));
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        for (Index d = 0; d < q.columns; ++d) s.view().at(i, j) += scale * q.at(i, d) * k.at(j, d);
      }
    }
    if (terms.bias() != nullptr) terms.bias()->head(h, q, k)->add({0, n}, {0, n}, s.view());
    Matrix<T>& soft = saved.soft.emplace_back(Matrix<T>::copy(s.view()));
    for (Index i = 0; i < n; ++i) softmax_row<T>(layer, i, soft.view().row_span(i));
    Matrix<T>& a = saved.weights.emplace_back(Matrix<T>::copy(soft.view()));
    if (terms.weight_terms() != nullptr) terms.weight_terms()->multiply(h, a.view());
    const MatrixView<T> out = head_part(context.view(), h, heads);
    for (Index i = 0; i < n; ++i) {
      for (Index j = 0; j < n; ++j) {
        for (Index d = 0; d < v.columns; ++d) out.at(i, d) += a.view().at(i, j) * v.at(j, d);
      }
    }
    if (terms.value_terms() != nullptr) terms.value_terms()->add(h, a.view(), out);
  }
  return context;
}

/// Forward alone.
template <class T>
Matrix<T> layer_context(const Layer& layer, const LayerInput<T>& in, LayerSaved<T>* out = nullptr) {
  const LayerProblem<T> problem(layer, in);
  const auto terms = layer.scheme->terms(problem.problem);
  LayerSaved<T> saved;
  Matrix<T> context = layer_forward(layer, in, *terms, saved);
  if (out != nullptr) *out = std::move(saved);
  return context;
}

/// The gradients of Σ w ⊙ context by everything that goes in. With `general`, which is the context
/// then, by materialized_attention instead of the loops here.
LayerInput<double> layer_gradients(const Layer& layer, const LayerInput<double>& in,
                                   const Matrix<double>& w, Matrix<double>* general = nullptr);

/// Every scheme with standard arguments, and with others that take another path.
std::vector<std::string> spellings();

/// A layer of consecutive tokens; with segments and a draw where the scheme takes them.
Layer layer_of(const std::string& text, Index tokens = 7);

}  // namespace masque::test
