#include "nn/position_layer.hpp"

#include "nn/attention/materialized_attention.hpp"

namespace masque::test {

std::vector<std::string> spellings() {
  std::vector<std::string> all = nn::position_names();
  for (const char* text : {"complex_order",
                           "convolutional(width=5)",
                           "convolutional(width=2,causal=true)",
                           "deberta(span=4,position_buckets=4,max_relative_positions=9)",
                           "deberta(span=2)",
                           "leaky_rerope(window=2,factor=3,layout=half)",
                           "equal_mean(length=20,layout=half)",
                           "floater(step=0.3,substeps=2,inner=5)",
                           "learned(alpha=0)",
                           "learned(alpha=0.7)",
                           "multiplicative(form=plain)",
                           "randomized(length=64,seed=3,scheme=learned)",
                           "randomized(scheme=t5(buckets=8))",
                           "randomized(length=3,scheme=xlnet)",
                           "recursive(step=0.5)",
                           "rerope(window=2)",
                           "rerope(window=2,size=2)",
                           "rope(layout=half,base=100)",
                           "rope_yarn(factor=4,length=64,beta_fast=8)",
                           "sandwich(size=6)",
                           "shaw(clip=2)",
                           "t5(bidirectional=false,buckets=6)",
                           "alibi(bf16=true)",
                           "tupe(relative=true)",
                           "tupe(cls=true)",
                           "tupe(relative=true,cls=true,alpha=0)",
                           "urpe(clip=1)",
                           "urpe(clip=2,scheme=t5(buckets=6))",
                           "urpe(scheme=rope)",
                           "urpe(clip=3,scheme=shaw(clip=2))",
                           "xpos(layout=half,scale_base=300)"}) {
    all.emplace_back(text);
  }
  return all;
}

Layer layer_of(const std::string& text, Index tokens) {
  Layer layer(text, tokens);
  if (text.find("xlnet") != std::string::npos) {
    for (Index i = 0; i < tokens; ++i) layer.segments.push_back(i < 3 ? 0 : 1);
  }
  if (text.starts_with("randomized") || text.starts_with("equal_mean")) layer.draw = 5;
  return layer;
}

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

namespace {

/// The gradients by queries, keys and values; those of parameters go where `terms` holds them.
void attention_backward(const Layer& layer, const LayerSaved<double>& saved,
                        nn::PositionTerms<double>& terms, const Matrix<double>& w,
                        LayerInput<double>& out) {
  const Index heads = layer.shape.num_attention_heads;
  for (Index h = 0; h < heads; ++h) {
    head_backward(layer, saved, terms, h, head_part(w.view(), h, heads),
                  head_part(out.query.view(), h, heads), head_part(out.key.view(), h, heads),
                  head_part(out.value.view(), h, heads));
  }
}

/// The same by materialized_attention, whose context must be that of the layer.
void general_backward(const Layer& layer, const LayerSaved<double>& saved,
                      nn::PositionTerms<double>& terms, const Matrix<double>& w,
                      LayerInput<double>& out, Matrix<double>& context) {
  const Index n = layer.tokens();
  const mask::BlockMap blocks(mask::parse_mask(layer.causal ? "causal" : "full").bind({n, n}));
  nn::MaterializedAttention<double> attention;
  attention.problem.query = saved.query.view();
  attention.problem.key = saved.key.view();
  attention.problem.value = saved.value.view();
  attention.problem.num_heads = layer.shape.num_attention_heads;
  attention.problem.num_key_value_heads = layer.shape.num_attention_heads;
  attention.problem.scale = layer.scheme->scale(layer.shape);
  attention.problem.normalizer = &normalizer("softmax");
  attention.problem.bias = terms.bias();
  attention.problem.blocks = &blocks;
  attention.weight_terms = terms.weight_terms();
  attention.value_terms = terms.value_terms();
  nn::MaterializedSaved<double> parts;
  nn::materialized_attention_forward(attention, context.view(), &parts);
  nn::MaterializedGradients<double> gradients;
  gradients.query = out.query.view();
  gradients.key = out.key.view();
  gradients.value = out.value.view();
  gradients.bias = terms.bias_gradient();
  gradients.weight_terms = terms.weight_terms();
  gradients.value_terms = terms.value_terms();
  nn::materialized_attention_backward<double>(attention, parts, w.view(), gradients);
}

}  // namespace

LayerInput<double> layer_gradients(const Layer& layer, const LayerInput<double>& in,
                                   const Matrix<double>& w, Matrix<double>* general) {
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
  if (general == nullptr) {
    attention_backward(layer, saved, *terms, w, out);
  } else {
    general_backward(layer, saved, *terms, w, out, *general);
  }
  terms->query_key_backward(out.query.view(), out.key.view());
  project_back(layer, out.query, 20, out.x.view());
  project_back(layer, out.key, 21, out.x.view());
  project_back(layer, out.value, 22, out.x.view());
  terms->input_backward(in.x.view(), out.x.view());
  return out;
}

}  // namespace masque::test
