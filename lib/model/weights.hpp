// The tensors of a model by role, as the file has them or transposed as the model needs them:
// matrices (out, in). Read from a checkpoint by the family's table of names (model/family/).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/design.hpp"
#include "tensor/matrix.hpp"
#include "tensor/row_source.hpp"

namespace masque::model {

/// A tensor as a matrix; a vector is one row. Without data: the model has none. It points into the
/// mapped file where that holds the same type, else into memory of its own.
template <class T>
struct Weight {
  MatrixView<const T> view;           ///< without gaps between rows; valid as long as `owner`
  std::shared_ptr<const void> owner;  ///< keeps the memory of `view`, a mapped file or a Matrix
  /// With LoadOptions::later, of a large matrix: what reads it. Then `view` has a shape and no
  /// data.
  std::shared_ptr<const RowSource> rows = nullptr;

  /// Whether the model has the tensor.
  explicit operator bool() const { return view.data != nullptr || rows != nullptr; }
  /// All elements, row by row; as valid as `view`.
  std::span<const T> span() const {
    return {view.data, static_cast<std::size_t>(view.rows * view.columns)};
  }
};

/// A dense layer: weight (out, in), bias (out) or none.
template <class T>
struct DenseWeights {
  Weight<T> weight;  ///< (out, in)
  Weight<T> bias;    ///< (1, out), or none
};

/// A norm: vectors as wide as what it norms.
template <class T>
struct NormWeights {
  Weight<T> weight;  ///< none: 1
  Weight<T> bias;    ///< none: 0
};

/// One layer. What a design does not have is without data; role_shape() gives the shapes.
template <class T>
struct LayerWeights {
  DenseWeights<T> query,          ///< hidden → heads · head size
      key,                        ///< hidden → key heads · head size
      value,                      ///< hidden → projected_value_heads() · value size
      output;                     ///< context_width() → hidden
  NormWeights<T> attention_norm;  ///< post-norm: after attention; pre-norm: in front of it
  DenseWeights<T> up;             ///< hidden → intermediate
  /// Gate of gated layers: the half that the activation sees.
  DenseWeights<T> gate;
  DenseWeights<T> down;                  ///< intermediate → hidden
  NormWeights<T> feed_forward_norm;      ///< post-norm: after the feed-forward layer; else in front
  NormWeights<T> query_norm,             ///< of the queries (QueryKeyNorm)
      key_norm;                          ///< of the keys
  NormWeights<T> attention_output_norm,  ///< norms_attention_output(): of what attention gives
      feed_forward_output_norm,          ///< norms_feed_forward_output(): of what that layer gives
      feed_forward_inner_norm;           ///< kNormFormer: (1, intermediate), in front of `down`
  Weight<T> attention_scale,             ///< kReZero: α of attention, one number
      feed_forward_scale;                ///< kReZero: α of the feed-forward layer, one number
  Weight<T> attention_residual,          ///< kAdmin: ω of attention, (1, hidden)
      feed_forward_residual;             ///< kAdmin: ω of the feed-forward layer, (1, hidden)
  Weight<T> head_scale;                  ///< kNormFormer: (1, value_heads())
  Weight<T> score_scale;                 ///< (1, heads), of normalizers that learn it
  DenseWeights<T> router;                ///< hidden → experts
  std::vector<DenseWeights<T>> expert_up,  ///< one an expert: hidden → intermediate size of experts
      expert_gate,                         ///< the half that the activation sees, in the same way
      expert_down;                         ///< one an expert: back
  DenseWeights<T> shared_expert_up,        ///< of the expert that all tokens go through
      shared_expert_gate,                  ///< in the same way
      shared_expert_down,                  ///< in the same way
      shared_expert_weight;                ///< hidden → 1
  Weight<T> sinks;                         ///< (1, heads)
  // SourceDesign
  DenseWeights<T> source_query,  ///< as `query`, for the states of an encoder
      source_key,                ///< the encoder's hidden → key heads · head size
      source_value,              ///< the encoder's hidden → heads of values · value size
      source_output;             ///< as `output`
  NormWeights<T> source_norm;    ///< as `attention_norm`
  // XLNet: vectors of heads · head size
  /// Projection of the sinusoids of distances: hidden → heads · head size.
  DenseWeights<T> relative;
  Weight<T> content_bias,   ///< r_w_bias
      position_bias,        ///< r_r_bias
      segment_bias;         ///< r_s_bias
  Weight<T> segment_table;  ///< (2, heads · head size)
  // DeBERTa without share_att_key
  /// Projection of distances that queries meet: hidden → heads · head size.
  DenseWeights<T> position_key,
      /// Projection of distances that keys meet: hidden → heads · head size.
      position_query;
  /// DeBERTa's, next to the first layer: (hidden, hidden · kernel size), kernel innermost
  DenseWeights<T> convolution;
  NormWeights<T> convolution_norm;  ///< norm of the sum of layer and convolution
  // Longformer, of tokens with global attention, of which a text has none: kept, not used
  DenseWeights<T> global_query,  ///< hidden → heads · head size
      global_key,                ///< the same
      global_value;              ///< the same
  // GAU
  DenseWeights<T> gated_input;  ///< hidden → 2e + s
  Weight<T> gated_gamma,        ///< γ of queries, then of keys: (2, s)
      gated_beta;               ///< β of queries, then of keys: (2, s)
  // masque
  Weight<T> talking_before,         ///< Λ of scores: (softmax_heads(), heads)
      talking_after;                ///< Λ of weights: (value_heads(), softmax_heads())
  std::vector<Weight<T>> position,  ///< parameters of the position scheme, as it lists them
      mixer;                        ///< parameters of the mixer, as it lists them
  Weight<T> latent_input,           ///< for layers with a bottleneck: (size, hidden)
      latent_output,                ///< (hidden, size)
      latent_kappa;                 ///< log κ, one number
};

/// The tensors of a model. What it does not have is without data; role_shape() gives the shapes.
template <class T>
struct ModelWeights {
  Weight<T> word_table,      ///< (vocabulary, embedding size)
      segment_table;         ///< (token types, embedding size)
  Weight<T> position_table;  ///< added to the embeddings where there is one, whatever the scheme
  NormWeights<T> embedding_norm;         ///< norm of the sum of the tables
  DenseWeights<T> embedding_projection;  ///< embedding size → hidden
  Weight<T> query_start;                 ///< XLNet's mask_emb: (1, hidden)
  Weight<T> late_positions;              ///< (positions, hidden size)
  Weight<T> relative_table;         ///< T5, MPNet: (buckets, heads); DeBERTa: (2 · span, hidden)
  NormWeights<T> relative_norm;     ///< DeBERTa: of that table
  std::vector<Weight<T>> position;  ///< masque: of a scheme that acts on the input or is shared
  std::vector<LayerWeights<T>> layers;  ///< one for each different LayerDesign::weights
  NormWeights<T> final_norm;            ///< after the last layer
  DenseWeights<T> head_transform;       ///< last_width() → width of the decoder
  NormWeights<T> head_norm;             ///< after the transform and its activation
  DenseWeights<T> decoder;  ///< (vocabulary or 1, width); tied: its weight is the word table
  /// Weights of VariantDesign::detector, without tables: one element, or none.
  std::vector<ModelWeights<T>> detector;
};

/// `weights` themselves, or with `detector` those of the model's detector, which must be there.
template <class T>
ModelWeights<T>& network_of(ModelWeights<T>& weights, bool detector) {
  return detector ? weights.detector.at(0) : weights;
}

/// A model as read: design, weights, and what was odd.
template <class T>
struct LoadedModel {
  Design design;  ///< with the head that the checkpoint has, and notes
  /// Weights of shapes that fit the design; all values are finite.
  ModelWeights<T> weights;
  std::string path;                 ///< as given to load_model; for messages
  std::vector<std::string> unused;  ///< tensors that no role took, by name
};

/// How load_model reads a checkpoint.
struct LoadOptions {
  std::string family;  ///< name or model_type; empty: by config.json's model_type or architectures
  /// Weights of large dense layers and the word table stay in their files (Weight::rows), for
  /// prepare() to read: half the memory and less. T is float.
  bool later = false;
};

/// An encoder–decoder as read.
template <class T>
struct LoadedPair {
  LoadedModel<T> encoder;  ///< as load_model() reads it, without a note of the decoder
  LoadedModel<T> decoder;  ///< its design has Design::source; the word table may be the encoder's
};

/// Reads the checkpoint at `path`: a folder, or a file of weights, next to a config.json. T is
/// float or double. Throws InputError for a family that is not known, options of config.json that
/// masque does not have (by name), missing tensors, wrong shapes and values that are not finite
/// (tensor and place named); UsageError for an `options.family` that is not known.
template <class T>
LoadedModel<T> load_model(const std::string& path, const LoadOptions& options = {});

/// Reads both parts of the encoder–decoder at `path` as load_model() with `options` reads one.
/// Nothing: the family has no decoder, or the checkpoint has no tensor of it.
template <class T>
std::optional<LoadedPair<T>> load_pair(const std::string& path, const LoadOptions& options = {});

}  // namespace masque::model
