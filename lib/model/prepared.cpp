#include "model/prepared.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <type_traits>

#include "base/error.hpp"
#include "kernel/parallel.hpp"
#include "model/detector.hpp"
#include "tensor/row_stack.hpp"

namespace masque::model {
namespace {

using kernel::Activation;
using kernel::Linear;
using kernel::Precision;

// Dense layers on one input, as one product.
template <class T, std::size_t N>
Linear<T> stacked(const std::array<const DenseWeights<T>*, N>& parts, Precision precision,
                  Activation activation = Activation::kNone) {
  bool any_bias = false, later = false;
  Index outputs = 0;
  for (const DenseWeights<T>* part : parts) {
    any_bias |= static_cast<bool>(part->bias);
    later |= part->weight.rows != nullptr;
    outputs += part->weight.view.rows;
  }
  std::vector<T> bias;
  if (any_bias) {
    bias.reserve(static_cast<std::size_t>(outputs));
    for (const DenseWeights<T>* part : parts) {
      const auto end = bias.size() + static_cast<std::size_t>(part->weight.view.rows);
      const std::span<const T> own = part->bias ? part->bias.span() : std::span<const T>{};
      bias.insert(bias.end(), own.begin(), own.end());
      bias.resize(end, T{0});
    }
  }
  if constexpr (std::is_same_v<T, float>) {
    if (later) {
      std::vector<std::shared_ptr<const RowSource>> sources;
      for (const DenseWeights<T>* part : parts) {
        const Weight<T>& weight = part->weight;
        sources.push_back(weight.rows != nullptr ? weight.rows
                                                 : std::make_shared<RowsInMemory>(weight.view));
      }
      return Linear<T>(std::make_shared<RowStack>(std::move(sources)), bias, precision, activation);
    }
  }
  std::vector<MatrixView<const T>> weights;
  weights.reserve(N);
  for (const DenseWeights<T>* part : parts) weights.push_back(part->weight.view);
  return Linear<T>(weights, bias, precision, activation);
}

template <class T>
Linear<T> single(const DenseWeights<T>& part, Precision precision,
                 Activation activation = Activation::kNone) {
  if (!part.weight) return {};
  return stacked<T, 1>({&part}, precision, activation);
}

// DeBERTa: keys and queries of the distances, which no token changes.
template <class T>
void project_distances(const Design& design, const LayerWeights<T>& from, MatrixView<const T> table,
                       Precision precision, PreparedLayer<T>& to) {
  const auto project = [&](const DenseWeights<T>& own, const DenseWeights<T>& shared) {
    const Linear<T> dense = single(design.share_attention_key ? shared : own, precision);
    Matrix<T> result(table.rows, dense.outputs());
    dense.forward(table, result.view());
    return result;
  };
  if (design.content_to_position) to.position_key = project(from.position_key, from.key);
  if (design.position_to_content) to.position_query = project(from.position_query, from.query);
}

/// Adds to `steps` those of the experts of a layer.
template <class T>
void add_expert_steps(const LayerWeights<T>& from, Precision precision, PreparedLayer<T>& to,
                      std::vector<std::function<void()>>& steps) {
  // Rounding would change which experts a token goes through.
  const Precision exact = precision == Precision::kBf16 ? Precision::kF32 : precision;
  steps.emplace_back([&, precision, exact] {
    to.router = single(from.router, exact);
    if (!from.shared_expert_up.weight) return;
    to.shared_expert_up =
        stacked<T, 2>({&from.shared_expert_gate, &from.shared_expert_up}, precision);
    to.shared_expert_down = single(from.shared_expert_down, precision);
    to.shared_expert_weight = single(from.shared_expert_weight, precision);
  });
  to.expert_up.resize(from.expert_up.size());
  to.expert_down.resize(from.expert_down.size());
  for (std::size_t e = 0; e < from.expert_up.size(); ++e) {
    steps.emplace_back([&, precision, e] {
      to.expert_up[e] = stacked<T, 2>({&from.expert_gate[e], &from.expert_up[e]}, precision);
      to.expert_down[e] = single(from.expert_down[e], precision);
    });
  }
}

// The packing steps of a layer, to be run on any thread.
template <class T>
void add_steps(const Design& design, const LayerWeights<T>& from, Precision precision,
               PreparedLayer<T>& to, std::vector<std::function<void()>>& steps) {
  to.query_norm = {design.norm, from.query_norm};
  to.key_norm = {design.norm, from.key_norm};
  to.attention_norm = {design.norm, from.attention_norm};
  to.feed_forward_norm = {design.norm, from.feed_forward_norm};
  to.source_norm = {design.norm, from.source_norm};
  to.convolution_norm = {design.norm, from.convolution_norm};
  to.attention_output_norm = {design.norm, from.attention_output_norm};
  to.feed_forward_output_norm = {design.norm, from.feed_forward_output_norm};
  to.feed_forward_inner_norm = {design.norm, from.feed_forward_inner_norm};
  to.attention_scale = from.attention_scale;
  to.feed_forward_scale = from.feed_forward_scale;
  to.attention_residual = from.attention_residual;
  to.feed_forward_residual = from.feed_forward_residual;
  to.head_scale = from.head_scale;
  to.score_scale = from.score_scale;
  to.content_bias = from.content_bias;
  to.position_bias = from.position_bias;
  to.segment_bias = from.segment_bias;
  to.segment_table = from.segment_table;
  to.gated_gamma = from.gated_gamma;
  to.gated_beta = from.gated_beta;
  to.talking_before = from.talking_before;
  to.talking_after = from.talking_after;
  to.position = PreparedParts<T>(from.position);
  to.mixer = PreparedParts<T>(from.mixer);
  to.latent_input = from.latent_input;
  to.latent_output = from.latent_output;
  steps.emplace_back([&, precision] { to.output = single(from.output, precision); });
  if (design.layer_kind == LayerKind::kGatedAttention) {
    steps.emplace_back([&, precision] {
      to.gated_input = single(from.gated_input, precision, design.activation);
    });
    return;
  }
  if (design.variants.mixer == nullptr) {
    steps.emplace_back([&, precision] { to.query = single(from.query, precision); });
    steps.emplace_back([&, precision] {
      to.key_value = stacked<T, 2>({&from.key, &from.value}, precision);
    });
  }
  if (design.source) {
    steps.emplace_back([&, precision] { to.source_query = single(from.source_query, precision); });
    steps.emplace_back([&, precision] {
      to.source_key_value = stacked<T, 2>({&from.source_key, &from.source_value}, precision);
    });
    steps.emplace_back(
        [&, precision] { to.source_output = single(from.source_output, precision); });
  }
  to.sinks = from.sinks;
  if (from.router.weight) return add_expert_steps(from, precision, to, steps);
  steps.emplace_back([&, precision] {
    to.up = design.gated ? stacked<T, 2>({&from.gate, &from.up}, precision)
                         : single(from.up, precision, design.activation);
  });
  steps.emplace_back([&, precision] { to.down = single(from.down, precision); });
  steps.emplace_back([&, precision] {
    to.relative = single(from.relative, precision);
    to.convolution = single(from.convolution, precision);
  });
}

template <class T>
void prepare_variants(const ModelWeights<T>& weights, PreparedModel<T>& model) {
  const Design& design = model.design;
  model.scheme = design.variants.position.scheme();
  model.has_position = layers_with_position(design);
  if (model.scheme) {
    model.scheme_facts = model.scheme->facts();
    model.scheme_shape = position_shape(design);
    model.position_is_shared = shares_position(design);
  }
  model.shared_position = PreparedParts<T>(weights.position);
  model.mixer = design.variants.mixer;
  if (model.mixer != nullptr) model.mixer_shape = mixer_shape(design);
  model.materialized_attention = needs_materialized_attention(design);
}

}  // namespace

template <class T>
PreparedParts<T>::PreparedParts(const std::vector<Weight<T>>& parts) : weights(parts) {
  views.reserve(parts.size());
  for (const Weight<T>& part : parts) views.push_back(part.view);
}

template <class T>
PreparedNorm<T>::PreparedNorm(const NormDesign& norm, const NormWeights<T>& weights)
    : design(norm), weight(weights.weight), bias(weights.bias) {
  if (norm.weight_offset == 0 || !weight) return;
  auto shifted = std::make_shared<Matrix<T>>(Matrix<T>::copy(weight.view));
  for (T& value : shifted->span()) value += static_cast<T>(norm.weight_offset);
  weight = {shifted->view(), shifted};
}

template <class T>
void PreparedNorm<T>::forward_columns(Index first, MatrixView<const T> x, MatrixView<T> y) const {
  const auto part = [&](const Weight<T>& all) {
    return all ? all.span().subspan(static_cast<std::size_t>(first),
                                    static_cast<std::size_t>(x.columns))
               : std::span<const T>();
  };
  kernel::norm_forward<T>(design->kind, x, part(weight), part(bias), design->epsilon, y);
}

template <class T>
void PreparedNorm<T>::forward(MatrixView<const T> x, MatrixView<T> y) const {
  kernel::norm_forward<T>(design->kind, x, weight.span(), bias.span(), design->epsilon, y);
}

template <class T>
void PreparedNorm<T>::residual_forward(MatrixView<const T> x, MatrixView<const T> branch,
                                       MatrixView<T> sum, MatrixView<T> y) const {
  kernel::residual_norm_forward<T>(design->kind, x, branch, weight.span(), bias.span(),
                                   design->epsilon, sum, y);
}

template <class T>
const typename PreparedModel<T>::Head& PreparedModel<T>::head() const {
  if (design.head.kind == HeadKind::kNone) {
    throw InputError(path, missing_head(design));
  }
  LazyHead& lazy = *lazy_head_;
  std::call_once(lazy.once, [&] {
    lazy.head.transform = single(lazy.transform, precision, design.head.activation);
    if (design.head.norm) lazy.head.norm = {*design.head.norm, lazy.norm};
    lazy.head.decoder = single(lazy.decoder, precision);
  });
  return lazy.head;
}

template <class T>
PreparedModel<T> prepare(LoadedModel<T> loaded, Precision precision) {
  PreparedModel<T> model;
  ModelWeights<T>& weights = loaded.weights;
  model.design = std::move(loaded.design);
  model.precision = precision;
  model.path = std::move(loaded.path);
  model.unused = std::move(loaded.unused);
  const Design& design = model.design;
  model.word_table = weights.word_table;
  model.position_table = weights.position_table;
  model.segment_table = weights.segment_table;
  if (design.embedding_norm) {
    model.embedding_norm = {*design.embedding_norm, weights.embedding_norm};
  }
  if (design.final_norm) model.final_norm = {design.norm, weights.final_norm};
  model.query_start = weights.query_start;
  model.late_positions = weights.late_positions;
  model.relative_table = weights.relative_table;
  model.embedding_projection = single(weights.embedding_projection, precision);

  prepare_variants(weights, model);

  model.layers.resize(weights.layers.size());
  std::vector<std::function<void()>> steps;
  for (std::size_t l = 0; l < weights.layers.size(); ++l) {
    add_steps(design, weights.layers[l], precision, model.layers[l], steps);
  }
  kernel::parallel_items(static_cast<Index>(steps.size()),
                         [&](Index i) { steps[static_cast<std::size_t>(i)](); });
  if (design.position == PositionType::kDisentangled) {
    Matrix<T> table = Matrix<T>::copy(weights.relative_table.view);
    if (design.relative_norm) {
      PreparedNorm<T>(design.norm, weights.relative_norm).forward(table.view(), table.view());
    }
    for (std::size_t l = 0; l < weights.layers.size(); ++l) {
      project_distances<T>(design, weights.layers[l], table.view(), precision, model.layers[l]);
    }
  }

  if (design.variants.detector) {
    LoadedModel<T> own;
    own.design = detector_design(design);
    own.weights = network_of(weights, true);
    own.path = model.path;
    model.detector = std::make_shared<const PreparedModel<T>>(prepare(std::move(own), precision));
  }
  model.lazy_head_ = std::make_unique<typename PreparedModel<T>::LazyHead>();
  model.lazy_head_->transform = weights.head_transform;
  model.lazy_head_->decoder = weights.decoder;
  model.lazy_head_->norm = weights.head_norm;
  return model;
}

template struct PreparedParts<float>;
template struct PreparedParts<double>;
template struct PreparedNorm<float>;
template struct PreparedNorm<double>;
template struct PreparedModel<float>;
template struct PreparedModel<double>;
template PreparedModel<float> prepare(LoadedModel<float>, Precision);
template PreparedModel<double> prepare(LoadedModel<double>, Precision);

}  // namespace masque::model
