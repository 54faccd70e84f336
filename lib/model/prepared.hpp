// A model's weights, prepared for the kernels: packed once, then read by all threads.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "kernel/linear.hpp"
#include "model/variants.hpp"
#include "model/weights.hpp"

namespace masque::model {

/// A norm with its parameters; without a design: none.
template <class T>
struct PreparedNorm {
  std::optional<NormDesign> design;
  Weight<T> weight, bias;

  PreparedNorm() = default;
  PreparedNorm(const NormDesign& norm, const NormWeights<T>& weights)
      : design(norm), weight(weights.weight), bias(weights.bias) {}
  bool present() const { return design.has_value(); }
  /// y = norm(x); y may be x.
  void forward(MatrixView<const T> x, MatrixView<T> y) const;
  /// y = norm(x + branch); y may be x. The sum goes to `sum`, if that has data.
  void residual_forward(MatrixView<const T> x, MatrixView<const T> branch, MatrixView<T> sum,
                        MatrixView<T> y) const;
};

/// Parameters as nn takes them: views, and what they point into.
template <class T>
struct PreparedParts {
  std::vector<MatrixView<const T>> views;
  std::vector<Weight<T>> weights;

  PreparedParts() = default;
  explicit PreparedParts(const std::vector<Weight<T>>& parts);
};

template <class T>
struct PreparedLayer {
  kernel::Linear<T> query;
  kernel::Linear<T> key_value;  ///< keys, then values, side by side
  kernel::Linear<T> output;
  PreparedNorm<T> attention_norm;
  kernel::Linear<T> up;  ///< gated: gate, then up, side by side
  kernel::Linear<T> down;
  PreparedNorm<T> feed_forward_norm;
  PreparedNorm<T> attention_output_norm, feed_forward_output_norm, feed_forward_inner_norm;
  Weight<T> attention_scale, feed_forward_scale, attention_residual, feed_forward_residual;
  Weight<T> head_scale, score_scale;
  // XLNet
  kernel::Linear<T> relative;
  Weight<T> content_bias, position_bias, segment_bias, segment_table;
  // DeBERTa: the projected table of distances
  Matrix<T> position_key, position_query;
  kernel::Linear<T> convolution;
  PreparedNorm<T> convolution_norm;
  // GAU
  kernel::Linear<T> gated_input;
  Weight<T> gated_gamma, gated_beta;
  // masque
  Weight<T> talking_before, talking_after;
  PreparedParts<T> position, mixer;
  Weight<T> latent_input, latent_output;
};

/// Everything that a pass needs. Immutable; owns or borrows through Weight.
template <class T>
struct PreparedModel {
  Design design;
  kernel::Precision precision = kernel::Precision::kF32;
  std::string path;
  std::vector<std::string> unused;

  Weight<T> word_table, position_table, segment_table;
  PreparedNorm<T> embedding_norm;
  kernel::Linear<T> embedding_projection;
  Weight<T> query_start, late_positions;
  Weight<T> relative_table;
  std::vector<PreparedLayer<T>> layers;
  PreparedNorm<T> final_norm;
  /// Of VariantDesign; nullptr where it has none.
  std::shared_ptr<const nn::PositionScheme> scheme;
  nn::PositionFacts scheme_facts;
  std::vector<bool> has_position;  ///< layers_with_position()
  nn::PositionShape scheme_shape;
  PreparedParts<T> shared_position;
  bool position_is_shared = false;
  const nn::Mixer* mixer = nullptr;
  nn::MixerShape mixer_shape;
  bool materialized_attention = false;            ///< needs_materialized_attention
  std::shared_ptr<const PreparedModel> detector;  ///< of VariantDesign::detector

  const PreparedLayer<T>& layer(Index l) const {
    return layers[static_cast<std::size_t>(design.layers[static_cast<std::size_t>(l)].weights)];
  }

  /// The head, packed when first requested: an embedding does without. InputError if there is none.
  struct Head {
    kernel::Linear<T> transform;
    PreparedNorm<T> norm;
    kernel::Linear<T> decoder;
  };
  const Head& head() const;

 private:
  template <class U>
  friend PreparedModel<U> prepare(LoadedModel<U> loaded, kernel::Precision precision);
  struct LazyHead {
    std::once_flag once;
    DenseWeights<T> transform, decoder;
    NormWeights<T> norm;
    Head head;
  };
  std::unique_ptr<LazyHead> lazy_head_;
};

/// Packs the weights, on all threads. T = double: precision is kF64.
template <class T>
PreparedModel<T> prepare(LoadedModel<T> loaded, kernel::Precision precision);

}  // namespace masque::model
