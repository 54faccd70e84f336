#include "nn/position_layer.hpp"

namespace masque::test {

namespace {

using View = MatrixView<double>;
using ConstView = MatrixView<const double>;

/// Gradients of one head's queries, keys and values.
void head_backward(const Layer& layer, const LayerSaved<double>& saved,
                   nn::PositionTerms<double>& terms, Index h, ConstView d_out, View d_query,
                   View d_key, View d_value) {
  const Index heads = layer.shape.num_attention_heads;
  const Index n = layer.tokens();
  const auto at = static_cast<std::size_t>(h);
  const double scale = layer.scheme->scale(layer.shape);
  const ConstView q = head_part(saved.query.view(), h, heads);
  const ConstView k = head_part(saved.key.view(), h, heads);
  const ConstView v = head_part(saved.value.view(), h, heads);
  const ConstView a = saved.weights[at].view();
  const ConstView soft = saved.soft[at].view();
  Matrix<double> d = Matrix<double>::zero(n, n);
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < n; ++j) {
      for (Index e = 0; e < v.columns; ++e) {
        d.view().at(i, j) += d_out.at(i, e) * v.at(j, e);
        d_value.at(j, e) += a.at(i, j) * d_out.at(i, e);
      }
    }
  }
  if (terms.value_terms() != nullptr) terms.value_terms()->add_backward(h, a, d_out, d.view());
  if (terms.weight_terms() != nullptr) terms.weight_terms()->multiply_backward(h, soft, d.view());
  for (Index i = 0; i < n; ++i) {
    double along = 0;
    for (Index j = 0; j < n; ++j) along += soft.at(i, j) * d.view().at(i, j);
    for (Index j = 0; j < n; ++j) {
      d.view().at(i, j) = soft.at(i, j) * (d.view().at(i, j) - along);
      for (Index e = 0; e < q.columns; ++e) {
        d_query.at(i, e) += scale * d.view().at(i, j) * k.at(j, e);
        d_key.at(j, e) += scale * d.view().at(i, j) * q.at(i, e);
      }
    }
  }
  if (terms.bias_gradient() != nullptr) {
    terms.bias_gradient()->backward(h, q, k, std::as_const(d).view(), d_query, d_key);
  }
}

/// d_x += d · mapᵀ.
void project_back(const Layer& layer, const Matrix<double>& d, std::uint64_t seed, View d_x) {
  const Matrix<double> map = projection(layer, d.columns(), seed);
  for (Index i = 0; i < d_x.rows; ++i) {
    for (Index c = 0; c < d_x.columns; ++c) {
      for (Index e = 0; e < d.columns(); ++e) {
        d_x.at(i, c) += d.view().at(i, e) * map.view().at(c, e);
      }
    }
  }
}

}  // namespace

LayerInput<double> layer_gradients(const Layer& layer, const LayerInput<double>& in,
                                   const Matrix<double>& w) {
  const auto zero_like = [](const Matrix<double>& x) {
    return Matrix<double>::zero(x.rows(), x.columns());
  };
  LayerInput<double> out{
      zero_like(in.x), zero_like(in.query), zero_like(in.key), zero_like(in.value), {}};
  std::vector<View> views;
  for (const Matrix<double>& p : in.parameters) {
    views.push_back(out.parameters.emplace_back(zero_like(p)).view());
  }
  LayerProblem<double> problem(layer, in);
  problem.problem.gradients = views;
  const auto terms = layer.scheme->terms(problem.problem);
  LayerSaved<double> saved;
  layer_forward(layer, in, *terms, saved);
  const Index heads = layer.shape.num_attention_heads;
  for (Index h = 0; h < heads; ++h) {
    head_backward(layer, saved, *terms, h, head_part(w.view(), h, heads),
                  head_part(out.query.view(), h, heads), head_part(out.key.view(), h, heads),
                  head_part(out.value.view(), h, heads));
  }
  terms->query_key_backward(out.query.view(), out.key.view());
  project_back(layer, out.query, 20, out.x.view());
  project_back(layer, out.key, 21, out.x.view());
  project_back(layer, out.value, 22, out.x.view());
  terms->input_backward(in.x.view(), out.x.view());
  return out;
}

}  // namespace masque::test
