// A model that is trained: from ids to the last states of the wanted rows, and the gradients back.
// Its forward pass is that of model/forward/forward.hpp, which inference runs too.
//
// One layer at a time, all rows of a chunk together. Queries and what they read (keys and values)
// may be different rows: T-TA reads the embeddings in every layer, XLNet's query stream reads the
// content, and of the last layer only the wanted rows are made.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/name_table.hpp"
#include "model/masks.hpp"
#include "nn/mixer.hpp"
#include "nn/position_scheme.hpp"
#include "train/data/example.hpp"
#include "train/network/dense.hpp"
#include "train/network/tape.hpp"
#include "train/network/trained_norm.hpp"

namespace masque::train {

/// What is random in the forward pass of a training step: every number is a function of seed, step,
/// purpose and element.
struct DropoutOptions {
  double hidden_dropout = 0;     ///< after embeddings, attention and feed-forward
  double attention_dropout = 0;  ///< of weights
  /// Of the scores that a layer hands on to the next one (model::PreviousScores): standard
  /// deviation of normal noise on each.
  double score_noise = 0;
  double score_dropout = 0;  ///< of the same scores, after the noise
  std::uint64_t seed = 0;    ///< of all numbers
  std::uint64_t step = 0;    ///< from 1
  Index first_row = 0;       ///< rows of the step before this chunk
  /// Of random positions (randomized, equal_mean); none: positions as they are.
  std::optional<std::uint64_t> draw;
  /// Whether points of latent bottlenecks are drawn around their mean directions, or are these.
  bool draws_latents = false;
};

/// Whether the backward pass computes what a layer keeps for it once more, from the layer's input,
/// instead of keeping it: a third more time for a forward pass, and the memory of one layer. It
/// changes no bit.
enum class Recompute {
  kAuto,  ///< where a chunk would keep more than 2 GiB
  kOn,    ///< for every chunk
  kOff,   ///< for none
};
/// "auto", "on", "off".
NameTable<Recompute> recompute_names();

/// Throws InputError unless the tokens of each sequence of `chunk` stand at 0, 1, 2 …: blocks go by
/// place.
void check_block_places(const ExampleChunk& chunk);

/// One layer's dense parts and norms; which of them exist depends on the design.
template <class T>
struct EncoderLayer {
  Dense<T> all;                             ///< queries, keys and values of one input
  Dense<T> query;                           ///< queries, where these have another input
  Dense<T> key_value;                       ///< keys and values, where these have another input
  Dense<T> output;                          ///< of attention: Role::kOutput
  Dense<T> up;                              ///< (gate and) up of the feed-forward layer
  Dense<T> down;                            ///< of the feed-forward layer: Role::kDown
  Dense<T> gated_input;                     ///< GAU: everything that reads the input
  Dense<T> distance_key;                    ///< XLNet, DeBERTa: keys of the distances
  Dense<T> distance_query;                  ///< DeBERTa: queries of the distances
  Dense<T> convolution;                     ///< DeBERTa, next to the first layer
  TrainedNorm<T> attention_norm;            ///< Role::kAttentionNorm
  TrainedNorm<T> feed_forward_norm;         ///< Role::kFeedForwardNorm
  TrainedNorm<T> convolution_norm;          ///< Role::kConvolutionNorm
  TrainedNorm<T> attention_output_norm;     ///< Role::kAttentionOutputNorm
  TrainedNorm<T> feed_forward_output_norm;  ///< Role::kFeedForwardOutputNorm
  TrainedNorm<T> feed_forward_inner_norm;   ///< Role::kFeedForwardInnerNorm

  /// Calls visit(dense) for each Dense, in the order above; `visit` may change them.
  template <class F>
  void for_each(const F& visit) {
    for (Dense<T>* part : {&all, &query, &key_value, &output, &up, &down, &gated_input,
                           &distance_key, &distance_query, &convolution})
      visit(*part);
  }
};

/// A model without its head, forward and backward.
/// T is float (fast), double or `std::complex<double>` (forward alone, for complex steps).
/// For one thread, called outside parallel regions: kernels use all threads, and results do not
/// depend on their number.
template <class T>
class Encoder {
 public:
  /// For a model of `design` at the places `map` of `parameters`, which must stay; products are in
  /// `precision`. Layers of many weights keep less from one product to the next; it changes no bit.
  /// Throws UsageError for a design that cannot be trained.
  Encoder(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
          kernel::Precision precision);

  /// The design, as it was given.
  const model::Design& design() const { return design_; }
  /// Sets what the backward pass computes once more to `recompute`; kAuto without a call. Throws
  /// UsageError for kOn with weights of all heads at once (talking heads, largest keys, scores of
  /// the layer before, diversity measured already), which other layers read.
  void set_recompute(Recompute recompute);
  /// From now on no gradient goes from a row to states of earlier blocks of `size` rows of its
  /// sequence: Transformer-XL's memory. What the layer's own weights make of these states still
  /// teaches the weights. Throws UsageError for designs whose layers read other rows than by
  /// attention, for gated attention units, and where the weights of all heads exist at once.
  void stop_at_blocks(Index size);
  /// Packs the weights, and looks at what is trained: to be called before the first pass and after
  /// every change of either.
  void prepare();
  /// Whether the backward pass has anything to do, as prepare() has seen it.
  bool learns() const { return learns_; }

  /// Returns for each of the parameters the layer whose backward pass is the last one that adds to
  /// its gradient. The number of layers: that in front of them (the final norm), or none at all, as
  /// of a head, and of other networks; −1: what follows the pass through all layers.
  std::vector<Index> last_layers() const;

  /// From now on the diversity of attention is measured (Tape::diversity), over the weights as the
  /// normalizer gives them of all sequences with a wanted row. The scores of all heads then exist
  /// at once, in plain loops, without dropout of weights. Throws UsageError for a mixer, which has
  /// none.
  void measure_diversity();
  /// Matrices of weights that it has for a sequence: heads × layers, of both streams.
  Index attention_matrices() const;

  /// Concentration κ of the points of the latent bottleneck number `bottleneck`, from 0, as it is
  /// now; a learned one is kept within 1e-6 … 1e6. For a design with bottlenecks.
  double kappa(Index bottleneck) const;
  /// The divergence of the points of all bottlenecks from the uniform distribution, in nats a
  /// sequence; adds `weight` times its gradients by learned concentrations, but of bottlenecks
  /// whose own is at most `least`. T is float or double.
  double add_divergence(double weight, double least);

  /// `last` ← the last states of the wanted rows of `chunk`, with `dropout`: `[wanted rows,
  /// hidden_size]`, of two towers twice as wide. Fills `tape` for the backward pass, with a
  /// detector also its logits (Tape::soft_mask). Throws InputError for ids and positions beyond the
  /// tables.
  void forward(const ExampleChunk& chunk, const DropoutOptions& dropout, Tape<T>& tape,
               MatrixView<T> last) const;
  /// Adds to the gradients of the parameters; `chunk`, `dropout` and `tape` are those of the
  /// forward pass, `d_last` is the gradient by what it gave. Goes no deeper than to the lowest
  /// layer with something that is trained (Tape::wants_given asks for more). T is float or double.
  void backward(const ExampleChunk& chunk, const DropoutOptions& dropout, Tape<T>& tape,
                MatrixView<const T> d_last) const;

 private:
  template <class>
  friend class EncoderRun;
  struct Detector;

  void find_lowest();

  model::Design design_;
  ParameterMap map_;
  Parameters<T>* parameters_;
  kernel::Precision precision_;
  model::LayerMasks masks_;
  std::vector<std::shared_ptr<const nn::AttentionNormalizer>> normalizers_;  ///< of each layer
  std::shared_ptr<const nn::PositionScheme> scheme_;
  nn::PositionShape scheme_shape_;
  bool position_is_shared_ = false;
  std::vector<bool> has_position_;  ///< model::layers_with_position()
  const nn::Mixer* mixer_ = nullptr;
  nn::MixerShape mixer_shape_;
  std::vector<nn::MixerParameter> mixer_parameters_;
  /// Talking heads, largest scores, scores of the layer before, diversity: weights of all heads
  /// exist at once.
  bool materialized_ = false;
  bool measures_ = false;                           ///< the diversity of attention
  bool large_ = false;                              ///< what can be made again is not kept
  std::shared_ptr<kernel::TrainedLinear<T>> room_;  ///< of Dense::share, where it is large
  Recompute recompute_ = Recompute::kAuto;
  Index block_size_ = 0;                 ///< of stop_at_blocks(); 0: gradients go everywhere
  std::vector<EncoderLayer<T>> layers_;  ///< one for each different LayerDesign::weights
  Dense<T> projection_;
  TrainedNorm<T> embedding_norm_, final_norm_, relative_norm_;
  std::shared_ptr<Detector> detector_;  ///< nullptr: none
  // Of the backward pass:
  bool learns_ = true;
  bool learns_embeddings_ = true;
  bool learns_detector_ = false;
  Index lowest_ = 0;  ///< layer; as many as there are: none
};

/// The detection network of a design that has one: an encoder, and a logit on its last states.
template <class T>
struct Encoder<T>::Detector {
  /// As Encoder::Encoder for the detector's own `design` and `map` in `parameters`, which must
  /// stay; products are in `precision`.
  Detector(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
           kernel::Precision precision)
      : encoder(design, map, parameters, precision),
        decoder(parameters, map, {model::Role::kDecoder}, 0, precision) {}

  Encoder<T> encoder;  ///< its layers
  Dense<T> decoder;    ///< the logit: [1, hidden_size] and a bias
};

}  // namespace masque::train
