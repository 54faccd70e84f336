// The tensors of a model by role, as the file has them or transposed as the model needs them:
// matrices (out, in). Read from a checkpoint by the family's table of names (model/family/).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/design.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// A tensor as a matrix; a vector is one row. Without data: the model has none. It points into the
/// mapped file where that holds the same type, else into memory of its own.
template <class T>
struct Weight {
  MatrixView<const T> view;
  std::shared_ptr<const void> owner;

  explicit operator bool() const { return view.data != nullptr; }
  std::span<const T> span() const {
    return {view.data, static_cast<std::size_t>(view.rows * view.columns)};
  }
};

/// A dense layer: weight (out, in), bias (out) or none.
template <class T>
struct DenseWeights {
  Weight<T> weight;
  Weight<T> bias;
};

template <class T>
struct NormWeights {
  Weight<T> weight;  ///< none: 1
  Weight<T> bias;    ///< none: 0
};

/// One layer.
template <class T>
struct LayerWeights {
  DenseWeights<T> query, key, value, output;
  NormWeights<T> attention_norm;  ///< post-norm: after attention; pre-norm: in front of it
  DenseWeights<T> up;             ///< hidden → intermediate
  DenseWeights<T> gate;           ///< of gated layers: the half that the activation sees
  DenseWeights<T> down;
  NormWeights<T> feed_forward_norm;
  /// NormPlacement::kSandwich; kNormFormer has the first and the third
  NormWeights<T> attention_output_norm, feed_forward_output_norm, feed_forward_inner_norm;
  Weight<T> attention_scale, feed_forward_scale;        ///< kReZero: α
  Weight<T> attention_residual, feed_forward_residual;  ///< kAdmin: ω
  Weight<T> head_scale;                                 ///< kNormFormer
  Weight<T> score_scale;                                ///< normalizers that learn it
  // XLNet: vectors of heads · head size
  DenseWeights<T> relative;
  Weight<T> content_bias, position_bias, segment_bias;  ///< r_w_bias, r_r_bias, r_s_bias
  Weight<T> segment_table;                              ///< (2, heads · head size)
  // DeBERTa without share_att_key
  DenseWeights<T> position_key, position_query;
  // DeBERTa's convolution next to the first layer: (hidden, hidden · kernel size), kernel innermost
  DenseWeights<T> convolution;
  NormWeights<T> convolution_norm;
  // GAU: hidden → 2e + s; γ and β of queries and keys: (2, s)
  DenseWeights<T> gated_input;
  Weight<T> gated_gamma, gated_beta;
  // masque: Λ of talking heads (heads out, in); parameters of the position scheme and of the mixer,
  // as they list them
  Weight<T> talking_before, talking_after;
  std::vector<Weight<T>> position, mixer;
  Weight<T> latent_input, latent_output, latent_kappa;  ///< of layers with a bottleneck
};

template <class T>
struct ModelWeights {
  Weight<T> word_table, segment_table;
  Weight<T> position_table;  ///< added to the embeddings where there is one, whatever the scheme
  NormWeights<T> embedding_norm;
  DenseWeights<T> embedding_projection;
  Weight<T> query_start;     ///< XLNet's mask_emb
  Weight<T> late_positions;  ///< (positions, hidden size)
  Weight<T> relative_table;  ///< T5, MPNet: (buckets, heads); DeBERTa: (2 · span, hidden)
  NormWeights<T> relative_norm;
  std::vector<Weight<T>> position;      ///< masque: of a scheme that acts on the input or is shared
  std::vector<LayerWeights<T>> layers;  ///< one for each different LayerDesign::weights
  NormWeights<T> final_norm;
  DenseWeights<T> head_transform;
  NormWeights<T> head_norm;
  DenseWeights<T> decoder;  ///< tied: its weight is the word table
  /// Of VariantDesign::detector, without tables: one, or none.
  std::vector<ModelWeights<T>> detector;
};

/// The weights of the model, or those of its detector, which must be there.
template <class T>
ModelWeights<T>& network_of(ModelWeights<T>& weights, bool detector) {
  return detector ? weights.detector.at(0) : weights;
}

/// A model as read: design, weights, and what was odd.
template <class T>
struct LoadedModel {
  Design design;
  ModelWeights<T> weights;
  std::string path;
  std::vector<std::string> unused;  ///< tensors that no role took, by name
};

struct LoadOptions {
  std::string family;  ///< empty: by config.json's model_type
};

/// Reads a checkpoint folder (config.json and weights). T is float or double. Throws InputError for
/// a family that is not known, options of config.json that masque does not have (by name),
/// missing tensors, wrong shapes and values that are not finite (tensor and place named).
template <class T>
LoadedModel<T> load_model(const std::string& path, const LoadOptions& options = {});

}  // namespace masque::model
