#include "model/prepared.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
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

/// How dense layers are packed.
struct Packing {
  Precision precision;
  kernel::WeightStorage storage = kernel::WeightStorage::kPacked;
};

// Dense layers on one input, as one product.
template <class T, std::size_t N>
Linear<T> stacked(const std::array<const DenseWeights<T>*, N>& parts, Packing packing,
                  Activation activation = Activation::kNone) {
  bool any_bias = false, later = false, all_later = true;
  Index outputs = 0;
  for (const DenseWeights<T>* part : parts) {
    any_bias |= static_cast<bool>(part->bias);
    later |= part->weight.rows != nullptr;
    all_later &= part->weight.rows != nullptr;
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
      if (!all_later && packing.storage == kernel::WeightStorage::kStreamed)
        packing.storage = kernel::WeightStorage::kStrips;
      return Linear<T>(std::make_shared<RowStack>(std::move(sources)), bias, packing.precision,
                       activation, packing.storage);
    }
  }
  std::vector<MatrixView<const T>> weights;
  weights.reserve(N);
  for (const DenseWeights<T>* part : parts) weights.push_back(part->weight.view);
  return Linear<T>(weights, bias, packing.precision, activation);
}

template <class T>
Linear<T> single(const DenseWeights<T>& part, Packing packing,
                 Activation activation = Activation::kNone) {
  if (!part.weight) return {};
  return stacked<T, 1>({&part}, packing, activation);
}

/// Bytes that `weight` takes when it is packed as strips.
template <class T>
double packed_bytes(const Weight<T>& weight, Precision precision) {
  if (!weight) return 0;
  const double numbers =
      static_cast<double>(weight.view.rows) * static_cast<double>(weight.view.columns);
  const RowSource* rows = weight.rows.get();
  if (precision == Precision::kBf16 || (rows != nullptr && rows->is_bf16())) return 2 * numbers;
  if (rows == nullptr || rows->part() == 0) return sizeof(T) * numbers;
  const double scales = rows->has_minima() ? 8 : 4;
  return numbers * (1 + scales / static_cast<double>(rows->part()));
}

/// Dense layers that are to be packed, and where their weights go: into memory, one after the
/// other, while there is some left.
template <class T>
class Packer {
 public:
  Packer(Precision precision, std::optional<std::uint64_t> memory)
      : precision_(precision),
        limited_(memory.has_value()),
        left_(static_cast<double>(memory.value_or(0))) {}

  /// How to pack `weights`, which take their part of the memory.
  Packing place(std::initializer_list<const Weight<T>*> weights) {
    if (!limited_) return {precision_};
    double bytes = 0;
    for (const Weight<T>* weight : weights) bytes += packed_bytes(*weight, precision_);
    // No later one, though it may be smaller: what is read again is one run of the file.
    full_ = full_ || bytes > left_;
    if (full_) return {precision_, kernel::WeightStorage::kStreamed};
    left_ -= bytes;
    return {precision_, kernel::WeightStorage::kStrips};
  }

  /// `to` becomes `part`, if the model has it, when run() packs all; both must live until then.
  void add(Linear<T>& to, const DenseWeights<T>& part, Activation activation = Activation::kNone) {
    if (!part.weight) return;
    steps_.emplace_back([&to, &part, activation, packing = place({&part.weight})] {
      to = single(part, packing, activation);
    });
  }
  /// The same with two layers on one input.
  void add(Linear<T>& to, const DenseWeights<T>& above, const DenseWeights<T>& below) {
    steps_.emplace_back([&to, &above, &below, packing = place({&above.weight, &below.weight})] {
      to = stacked<T, 2>({&above, &below}, packing);
    });
  }
  /// The same with products that are not rounded to bfloat16.
  void add_exact(Linear<T>& to, const DenseWeights<T>& part) {
    Packing packing = place({&part.weight});
    if (packing.precision == Precision::kBf16) packing.precision = Precision::kF32;
    steps_.emplace_back([&to, &part, packing] { to = single(part, packing); });
  }

  /// Packs all, on all threads.
  void run() {
    kernel::parallel_items(std::ssize(steps_),
                           [&](Index i) { steps_[static_cast<std::size_t>(i)](); });
  }

 private:
  Precision precision_;
  bool limited_;
  double left_;
  bool full_ = false;
  std::vector<std::function<void()>> steps_;
};

// DeBERTa: keys and queries of the distances, which no token changes.
template <class T>
void project_distances(const Design& design, const LayerWeights<T>& from, MatrixView<const T> table,
                       Precision precision, PreparedLayer<T>& to) {
  const auto project = [&](const DenseWeights<T>& own, const DenseWeights<T>& shared) {
    const Linear<T> dense = single(design.share_attention_key ? shared : own, Packing{precision});
    Matrix<T> result(table.rows, dense.outputs());
    dense.forward(table, result.view());
    return result;
  };
  if (design.content_to_position) to.position_key = project(from.position_key, from.key);
  if (design.position_to_content) to.position_query = project(from.position_query, from.query);
}

/// Adds the experts of a layer to `packer`.
template <class T>
void add_experts(const LayerWeights<T>& from, PreparedLayer<T>& to, Packer<T>& packer) {
  // Rounding would change which experts a token goes through.
  packer.add_exact(to.router, from.router);
  if (from.shared_expert_up.weight) {
    packer.add(to.shared_expert_up, from.shared_expert_gate, from.shared_expert_up);
    packer.add(to.shared_expert_down, from.shared_expert_down);
    packer.add(to.shared_expert_weight, from.shared_expert_weight);
  }
  to.expert_up.resize(from.expert_up.size());
  to.expert_down.resize(from.expert_down.size());
  for (std::size_t e = 0; e < from.expert_up.size(); ++e) {
    packer.add(to.expert_up[e], from.expert_gate[e], from.expert_up[e]);
    packer.add(to.expert_down[e], from.expert_down[e]);
  }
}

/// Fills `to`, and adds its dense layers to `packer`.
template <class T>
void prepare_layer(const Design& design, const LayerWeights<T>& from, PreparedLayer<T>& to,
                   Packer<T>& packer) {
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
  packer.add(to.output, from.output);
  if (design.layer_kind == LayerKind::kGatedAttention)
    return packer.add(to.gated_input, from.gated_input, design.activation);
  if (design.variants.mixer == nullptr) {
    packer.add(to.query, from.query);
    packer.add(to.key_value, from.key, from.value);
  }
  if (design.source) {
    packer.add(to.source_query, from.source_query);
    packer.add(to.source_key_value, from.source_key, from.source_value);
    packer.add(to.source_output, from.source_output);
  }
  to.sinks = from.sinks;
  if (from.router.weight) return add_experts(from, to, packer);
  if (design.gated) {
    packer.add(to.up, from.gate, from.up);
  } else {
    packer.add(to.up, from.up, design.activation);
  }
  packer.add(to.down, from.down);
  packer.add(to.relative, from.relative);
  packer.add(to.convolution, from.convolution);
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
    const Packing packing{precision, head_storage_};
    lazy.head.transform = single(lazy.transform, packing, design.head.activation);
    if (design.head.norm) lazy.head.norm = {*design.head.norm, lazy.norm};
    lazy.head.decoder = single(lazy.decoder, packing);
  });
  return lazy.head;
}

template <class T>
PreparedModel<T> prepare(LoadedModel<T> loaded, Precision precision,
                         std::optional<std::uint64_t> memory) {
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
  Packer<T> packer(precision, memory);
  packer.add(model.embedding_projection, weights.embedding_projection);
  // Every run needs the head, and it is the largest matrix.
  model.head_storage_ =
      packer.place({&weights.head_transform.weight, &weights.decoder.weight}).storage;

  prepare_variants(weights, model);

  model.layers.resize(weights.layers.size());
  for (std::size_t l = 0; l < weights.layers.size(); ++l)
    prepare_layer(design, weights.layers[l], model.layers[l], packer);
  packer.run();
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
template PreparedModel<float> prepare(LoadedModel<float>, Precision, std::optional<std::uint64_t>);
template PreparedModel<double> prepare(LoadedModel<double>, Precision,
                                       std::optional<std::uint64_t>);

}  // namespace masque::model
