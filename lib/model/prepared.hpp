// A model's weights, prepared for the kernels: packed once, then read by all threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "kernel/product/linear.hpp"
#include "model/variants.hpp"
#include "model/weights.hpp"

namespace masque::model {

/// A norm with its parameters; without a design: none.
template <class T>
struct PreparedNorm {
  std::optional<NormDesign> design;  ///< none: there is no norm
  Weight<T> weight,                  ///< none: 1; with NormDesign::weight_offset
      bias;                          ///< none: 0

  PreparedNorm() = default;
  /// The norm of `norm` with `weights`, whose memory it shares where they are stored as they are.
  PreparedNorm(const NormDesign& norm, const NormWeights<T>& weights);
  /// Whether there is a norm; forward() and residual_forward() need it.
  bool present() const { return design.has_value(); }
  /// `y` = norm(`x`), row by row; `y` may be `x`.
  void forward(MatrixView<const T> x, MatrixView<T> y) const;
  /// `y` = norm(`x`) with the weights from element `first` on, as many as `x` has columns.
  void forward_columns(Index first, MatrixView<const T> x, MatrixView<T> y) const;
  /// `y` = norm(`x` + `branch`); `y` may be `x`. The sum goes to `sum`, if that has data.
  void residual_forward(MatrixView<const T> x, MatrixView<const T> branch, MatrixView<T> sum,
                        MatrixView<T> y) const;
};

/// Parameters as nn takes them: views, and what they point into.
template <class T>
struct PreparedParts {
  std::vector<MatrixView<const T>> views;  ///< one a parameter, into the memory of `weights`
  std::vector<Weight<T>> weights;          ///< keep that memory

  PreparedParts() = default;
  /// Prepares `parts`, whose memory it shares.
  explicit PreparedParts(const std::vector<Weight<T>>& parts);
};

/// The LayerWeights of one layer, dense layers packed. What a design does not have is empty.
template <class T>
struct PreparedLayer {
  kernel::Linear<T> query;             ///< LayerWeights::query
  kernel::Linear<T> key_value;         ///< keys, then values, side by side
  kernel::Linear<T> output;            ///< LayerWeights::output
  kernel::Linear<T> source_query;      ///< LayerWeights::source_query
  kernel::Linear<T> source_key_value;  ///< keys, then values, side by side, of an encoder's states
  kernel::Linear<T> source_output;     ///< LayerWeights::source_output
  PreparedNorm<T> source_norm;         ///< LayerWeights::source_norm
  PreparedNorm<T> query_norm,          ///< LayerWeights::query_norm
      key_norm;                        ///< LayerWeights::key_norm
  PreparedNorm<T> attention_norm;  ///< present also where the design has no such norm, as all here
  /// Gated: gate, then up, side by side, without the activation, which it has otherwise.
  kernel::Linear<T> up;
  kernel::Linear<T> down;                    ///< LayerWeights::down
  PreparedNorm<T> feed_forward_norm;         ///< LayerWeights::feed_forward_norm
  PreparedNorm<T> attention_output_norm,     ///< LayerWeights::attention_output_norm
      feed_forward_output_norm,              ///< LayerWeights::feed_forward_output_norm
      feed_forward_inner_norm;               ///< LayerWeights::feed_forward_inner_norm
  Weight<T> attention_scale,                 ///< LayerWeights::attention_scale
      feed_forward_scale,                    ///< LayerWeights::feed_forward_scale
      attention_residual,                    ///< LayerWeights::attention_residual
      feed_forward_residual;                 ///< LayerWeights::feed_forward_residual
  Weight<T> head_scale,                      ///< LayerWeights::head_scale
      score_scale;                           ///< LayerWeights::score_scale
  kernel::Linear<T> router;                  ///< LayerWeights::router
  std::vector<kernel::Linear<T>> expert_up,  ///< one an expert: gate, then up
      expert_down;                           ///< LayerWeights::expert_down
  kernel::Linear<T> shared_expert_up,        ///< gate, then up
      shared_expert_down,                    ///< LayerWeights::shared_expert_down
      shared_expert_weight;                  ///< LayerWeights::shared_expert_weight
  Weight<T> sinks;                           ///< LayerWeights::sinks
  // XLNet
  kernel::Linear<T> relative;  ///< LayerWeights::relative
  Weight<T> content_bias,      ///< LayerWeights::content_bias
      position_bias,           ///< LayerWeights::position_bias
      segment_bias,            ///< LayerWeights::segment_bias
      segment_table;           ///< LayerWeights::segment_table
  // DeBERTa
  Matrix<T> position_key,  ///< (2 · span, heads · head size): projected distances, for queries
      position_query;      ///< the same for keys
  kernel::Linear<T> convolution;     ///< without its activation
  PreparedNorm<T> convolution_norm;  ///< LayerWeights::convolution_norm
  // GAU
  kernel::Linear<T> gated_input;  ///< with the activation
  Weight<T> gated_gamma,          ///< LayerWeights::gated_gamma
      gated_beta;                 ///< LayerWeights::gated_beta
  // masque
  Weight<T> talking_before,   ///< LayerWeights::talking_before
      talking_after;          ///< LayerWeights::talking_after
  PreparedParts<T> position,  ///< LayerWeights::position
      mixer;                  ///< LayerWeights::mixer
  Weight<T> latent_input,     ///< LayerWeights::latent_input
      latent_output;          ///< LayerWeights::latent_output
};

/// Everything that a pass needs. Immutable and thread-safe; packed weights are its own, others are
/// shared through Weight.
template <class T>
struct PreparedModel {
  Design design;                                          ///< LoadedModel::design
  kernel::Precision precision = kernel::Precision::kF32;  ///< precision of matrix products
  std::string path;                                       ///< path of the checkpoint, for messages
  std::vector<std::string> unused;                        ///< LoadedModel::unused

  Weight<T> word_table,                    ///< (vocabulary, embedding size)
      position_table,                      ///< (positions, embedding size)
      segment_table;                       ///< (token types, embedding size)
  PreparedNorm<T> embedding_norm;          ///< norm of the sum of the tables
  kernel::Linear<T> embedding_projection;  ///< embedding size → hidden; empty: none
  Weight<T> query_start,                   ///< XLNet's mask_emb: (1, hidden)
      late_positions;                      ///< (positions, hidden)
  Weight<T> relative_table;                ///< ModelWeights::relative_table
  std::vector<PreparedLayer<T>> layers;    ///< one for each different LayerDesign::weights
  PreparedNorm<T> final_norm;              ///< after the last layer
  /// The scheme of VariantDesign; nullptr where it has none.
  std::shared_ptr<const nn::PositionScheme> scheme;
  nn::PositionFacts scheme_facts;                 ///< facts of `scheme`
  std::vector<bool> has_position;                 ///< layers_with_position()
  nn::PositionShape scheme_shape;                 ///< position_shape()
  PreparedParts<T> shared_position;               ///< ModelWeights::position
  bool position_is_shared = false;                ///< shares_position()
  const nn::Mixer* mixer = nullptr;               ///< the design's
  nn::MixerShape mixer_shape;                     ///< mixer_shape()
  bool materialized_attention = false;            ///< needs_materialized_attention
  std::shared_ptr<const PreparedModel> detector;  ///< the detector of VariantDesign::detector

  /// The weights of layer `l`, which other layers may share.
  const PreparedLayer<T>& layer(Index l) const {
    return layers[static_cast<std::size_t>(design.layers[static_cast<std::size_t>(l)].weights)];
  }

  /// The head, packed.
  struct Head {
    kernel::Linear<T> transform;  ///< with the activation; empty: none
    PreparedNorm<T> norm;         ///< norm of the transform
    kernel::Linear<T> decoder;    ///< to the vocabulary, or to one number
  };
  /// The head, packed when first requested: an embedding does without. Thread-safe. Throws
  /// InputError if there is none.
  const Head& head() const;

 private:
  template <class U>
  friend PreparedModel<U> prepare(LoadedModel<U> loaded, kernel::Precision precision,
                                  std::optional<std::uint64_t> memory);
  struct LazyHead {
    std::once_flag once;
    DenseWeights<T> transform, decoder;
    NormWeights<T> norm;
    Head head;
  };
  std::unique_ptr<LazyHead> lazy_head_;
  kernel::WeightStorage head_storage_ = kernel::WeightStorage::kPacked;
};

/// Packs the weights of `loaded` for products of `precision`, on all threads; those that stay in
/// their files (Weight::rows) for `memory` as ModelOptions has it. T = double: precision is kF64.
/// Throws UsageError for a mixer or position scheme that is not known, and InputError for weights
/// that cannot be read or are not finite.
template <class T>
PreparedModel<T> prepare(LoadedModel<T> loaded, kernel::Precision precision,
                         std::optional<std::uint64_t> memory = std::nullopt);

}  // namespace masque::model
