// A model that is trained: from ids to the last states of the wanted rows, and the gradients back.
// Its forward pass is that of model/forward/forward.hpp, which inference runs too.
//
// One layer at a time, all rows of a chunk together. Queries and what they read (keys and values)
// may be different rows: T-TA reads the embeddings in every layer, XLNet's query stream reads the
// content, and of the last layer only the wanted rows are made.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/string/name_table.hpp"
#include "model/forward/latent_forward.hpp"
#include "model/forward/layer_memory.hpp"
#include "model/forward/rotary_tables.hpp"
#include "model/forward/soft_mask_forward.hpp"
#include "model/forward/stream_masks.hpp"
#include "model/masks.hpp"
#include "nn/attention/materialized_attention.hpp"
#include "nn/mixer/mixer.hpp"
#include "nn/position/position_scheme.hpp"
#include "tensor/matrix.hpp"
#include "train/data/example.hpp"
#include "train/network/dense.hpp"
#include "train/network/diversity.hpp"
#include "train/network/layer_magnitudes.hpp"
#include "train/network/trained_norm.hpp"

namespace masque::train {

// What a forward pass leaves for the backward pass. Memory is kept from chunk to chunk.

/// One layer of a stream.
template <class T>
struct LayerTape : model::LayerMemory<T> {
  Matrix<T> saved;                                     ///< for the backward pass of attention
  Matrix<T> source_saved;                              ///< the same of that to an encoder's states
  std::vector<nn::MaterializedSaved<T>> materialized;  ///< one a sequence
};

/// Rows that go through the layers together, and their states.
template <class T>
struct StreamTape : model::StreamRows {
  std::vector<TokenId> ids;          ///< what was embedded
  std::vector<Matrix<T>> x;          ///< before each layer, and after the last
  std::vector<LayerTape<T>> layers;  ///< one with Tape::recomputes
  Matrix<T> embedded;                ///< in front of the embedding norm, [rows, embedding_size]
  Matrix<T> normed;                  ///< after it, [rows, embedding_size]
};

template <class T>
struct Tape;

/// What a pass keeps of the detector.
template <class T>
struct SoftMaskTape : model::SoftMaskMemory<T> {
  StreamTape<T> masked;               ///< the embeddings of [MASK]
  std::unique_ptr<Tape<T>> detector;  ///< the detector's own
  Matrix<T> last;                     ///< the detector's last states, one row a token
  /// Gradient of the loss by its logits, [rows, 1]: 0 after the forward pass; whoever has a loss on
  /// them fills it before the backward pass.
  Matrix<T> d_logits;
  Matrix<T> d_last;    ///< gradient by `last`
  Matrix<T> d_plain;   ///< gradient by the embeddings of the tokens
  Matrix<T> d_masked;  ///< gradient by the embeddings of [MASK]
};

/// What a pass keeps of a latent bottleneck.
template <class T>
struct LatentTape : model::LatentMemory<T> {
  double kappa = 0;             ///< concentration that they were drawn with
  std::vector<double> cosines;  ///< SphereNoise's, one a sequence
  std::vector<double> slopes;   ///< derivatives of these by κ; empty unless it is learned
  Matrix<double> normal;        ///< SphereNoise's, [sequences, size]
};

/// The states of an encoder that a decoder reads (model::SourceDesign), and their gradient.
template <class T>
struct SourceTape {
  MatrixView<const T> states;     ///< [tokens of all sources, hidden_size]: given for both passes
  std::span<const Index> begins;  ///< first row of each sequence's source, and the end: given
  MatrixView<T> d_states;         ///< backward: is added to; without data: not wanted
};

/// What an encoder's pass leaves. One for each encoder; it may be used again for other chunks.
template <class T>
struct Tape {
  StreamTape<T> content;   ///< all rows of the chunk
  StreamTape<T> selected;  ///< with `split`
  /// Each stream has the memory of one layer alone, which the backward pass fills again from
  /// StreamTape::x.
  bool recomputes = false;
  bool split = false;  ///< `selected` is used: T-TA, two streams, or a last layer of wanted rows
  SoftMaskTape<T> soft_mask;           ///< only with a detector
  std::vector<LatentTape<T>> latents;  ///< one a bottleneck
  model::StreamMasks masks;            ///< masks of the layers that have run
  model::RotaryTables<T> rotary;       ///< tables of the chunk's positions
  Matrix<T> last;                      ///< before the final norm, one row a wanted row
  Index first_distance = 0;            ///< XLNet: of row 0 of `distances`
  Matrix<T> distances;                 ///< what is projected: XLNet's sinusoids, DeBERTa's table
  Matrix<T> d_distances;               ///< gradient by `distances`
  /// In an encoder that measures, sums over the attention matrices of the pass.
  std::array<Wide<T>, kDiversities> diversity{};
  /// What the loss changes with the measures of one of them: given for the backward pass.
  Diversities diversity_slopes{};
  /// States of other networks, one row for each of ExampleChunk::given: given for the forward pass.
  Matrix<T> given;
  SourceTape<T> source;     ///< only of a decoder that reads an encoder's states
  Matrix<T> d_given;        ///< gradient by `given`, of the backward pass
  bool wants_given = true;  ///< whether `d_given` is made
  /// Forward: where there is a place for it, each layer's are added; not of two towers.
  std::vector<LayerMagnitudes>* magnitudes = nullptr;
  /// Backward: called with the layers that the pass is through, from their number, in front of the
  /// last one, down: Encoder::last_layers; may be empty.
  std::function<void(Index)> passed = {};
  Matrix<T> d_content;             ///< backward: gradient by the states of `content`
  Matrix<T> d_query;               ///< backward: gradient by the states of `selected`
  Matrix<T> d_state;               ///< backward: gradient by the last states of the wanted rows
  std::vector<Matrix<T>> scratch;  ///< memory of a backward pass, by number
};

// The encoder.

/// What is random in the forward pass of a training step: every number is a function of seed, step,
/// purpose and element.
struct DropoutOptions {
  double hidden_dropout = 0;     ///< after embeddings, attention and feed-forward
  double attention_dropout = 0;  ///< share of weights that become 0
  /// Standard deviation of normal noise on each score that a layer hands on to the next one
  /// (model::PreviousScores).
  double score_noise = 0;
  double score_dropout = 0;  ///< share of the same scores that become 0, after the noise
  std::uint64_t seed = 0;    ///< seed of all numbers
  std::uint64_t step = 0;    ///< from 1
  Index first_row = 0;       ///< rows of the step before this chunk
  Index first_source = 0;    ///< of encoder–decoders: tokens of sources before it
  /// Seed of random positions (randomized, equal_mean); none: positions as they are.
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
  Dense<T> output;                          ///< output of attention: Role::kOutput
  Dense<T> up;                              ///< (gate and) up of the feed-forward layer
  Dense<T> down;                            ///< second layer of the feed-forward layer: Role::kDown
  Dense<T> gated_input;                     ///< GAU: everything that reads the input
  Dense<T> distance_key;                    ///< XLNet, DeBERTa: keys of the distances
  Dense<T> distance_query;                  ///< DeBERTa: queries of the distances
  Dense<T> convolution;                     ///< DeBERTa, next to the first layer
  Dense<T> router;                          ///< Role::kRouter
  std::vector<Dense<T>> expert_up;          ///< gate and up, one an expert
  std::vector<Dense<T>> expert_down;        ///< Role::kExpertDown, one an expert
  Dense<T> shared_expert_up;                ///< gate and up of the shared expert
  Dense<T> shared_expert_down;              ///< Role::kSharedExpertDown
  Dense<T> shared_expert_weight;            ///< Role::kSharedExpertWeight
  Dense<T> source_query;                    ///< Role::kSourceQuery
  Dense<T> source_key_value;                ///< keys and values of an encoder's states
  Dense<T> source_output;                   ///< Role::kSourceOutput
  TrainedNorm<T> source_norm;               ///< Role::kSourceNorm
  TrainedNorm<T> query_norm;                ///< Role::kQueryNorm
  TrainedNorm<T> key_norm;                  ///< Role::kKeyNorm
  TrainedNorm<T> attention_norm;            ///< Role::kAttentionNorm
  TrainedNorm<T> feed_forward_norm;         ///< Role::kFeedForwardNorm
  TrainedNorm<T> convolution_norm;          ///< Role::kConvolutionNorm
  TrainedNorm<T> attention_output_norm;     ///< Role::kAttentionOutputNorm
  TrainedNorm<T> feed_forward_output_norm;  ///< Role::kFeedForwardOutputNorm
  TrainedNorm<T> feed_forward_inner_norm;   ///< Role::kFeedForwardInnerNorm

  /// Calls visit(dense) for each Dense; `visit` may change them.
  template <class F>
  void for_each(const F& visit) {
    for (Dense<T>* part :
         {&all, &query, &key_value, &output, &up, &down, &gated_input, &distance_key,
          &distance_query, &convolution, &router, &shared_expert_up, &shared_expert_down,
          &shared_expert_weight, &source_query, &source_key_value, &source_output})
      visit(*part);
    for (std::vector<Dense<T>>* parts : {&expert_up, &expert_down})
      std::ranges::for_each(*parts, visit);
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
  /// Of a decoder: whether the backward pass is to give SourceTape::d_states (`wants`); false
  /// without a call. Before prepare().
  void want_source(bool wants) { wants_source_ = wants; }
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
  /// Normalizer of each layer.
  std::vector<std::shared_ptr<const nn::AttentionNormalizer>> normalizers_;
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
  std::shared_ptr<kernel::TrainedLinear<T>> room_;  ///< room for Dense::share, where it is large
  Recompute recompute_ = Recompute::kAuto;
  /// The block size of stop_at_blocks(); 0: gradients go everywhere.
  Index block_size_ = 0;
  std::vector<EncoderLayer<T>> layers_;  ///< one for each different LayerDesign::weights
  Dense<T> projection_;
  TrainedNorm<T> embedding_norm_, final_norm_, relative_norm_;
  std::shared_ptr<Detector> detector_;  ///< nullptr: none
  // In the backward pass:
  bool learns_ = true;
  bool learns_embeddings_ = true;
  bool learns_detector_ = false;
  bool wants_source_ = false;
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
