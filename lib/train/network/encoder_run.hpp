// One pass of a chunk through an encoder, forward or backward. Inside lib/train alone.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kernel/norm.hpp"
#include "kernel/parallel.hpp"
#include "model/forward/attention_inputs.hpp"
#include "model/forward/embedding_sum.hpp"
#include "model/forward/forward.hpp"
#include "nn/attention/differentiable_attention.hpp"
#include "tensor/matrix.hpp"
#include "train/network/encoder.hpp"

namespace masque::train {

/// Scratch matrices that parts of a layer's backward pass keep at the same time; those of one file
/// are below.
enum : std::size_t {
  kDDistanceKeys = 16,
  kDDistanceQueries,
  kNoQuery,  ///< gradients of queries where only those of keys are wanted
  kNoStates,
  kDEarlier,  ///< gradients of keys and values of earlier blocks
  kDEarlierStates,
  kDSource,          ///< add_source_backward(): gradients by the sum with the residual
  kDSourceBranch,    ///< by what the output projection gave
  kDSourceContext,   ///< by what it read
  kDSourceQuery,     ///< by queries of the source
  kDSourceKeyValue,  ///< by its keys and values
  kDRaw              ///< gradients by queries or keys in front of their norms
};

/// The `Run` of model/forward/forward.hpp that keeps what its backward pass reads, and that
/// backward pass. Made anew for each pass over a chunk. T as of Encoder.
template <class T>
class EncoderRun {
 public:
  using Number = T;                          ///< type of all states
  using Stream = StreamTape<T>;              ///< rows with their states
  using Role = model::Role;                  ///< a place of parameters
  using DropoutPlace = model::DropoutPlace;  ///< where dropout acts
  using HeadSizes = model::HeadSizes;        ///< sizes of an attention
  static constexpr bool kKeeps = true;       ///< layers are kept on the tape

  /// All references must stay: `encoder`, which is prepared, `chunk`, `dropout`, and `tape`, which
  /// takes from forward() to backward() what was kept.
  EncoderRun(const Encoder<T>& encoder, const ExampleChunk& chunk, const DropoutOptions& dropout,
             Tape<T>& tape);

  /// Encoder::forward: `last` ← the last states of the wanted rows.
  void forward(MatrixView<T> last);
  /// Encoder::backward, from `d_last`, the gradient by these.
  void backward(MatrixView<const T> d_last);

  // What the templates of model/forward/forward.hpp use.
  /// The encoder's design.
  const model::Design& design() const { return design_; }
  /// The dense layers and norms of layer `l`.
  const EncoderLayer<T>& layer(Index l) const {
    return encoder_.layers_[static_cast<std::size_t>(weights_of(l))];
  }
  /// The values of `role` in layer `l`; without data: the model has none.
  MatrixView<const T> matrix(Role role, Index l) const;
  /// What layer `l` keeps of `stream`: one place for all layers with Tape::recomputes.
  LayerTape<T>& memory(Index l, Stream& stream) const {
    return stream.layers[tape_.recomputes ? 0 : static_cast<std::size_t>(l)];
  }
  /// The states of `stream` in front of layer `l`, or after the last: `[rows, hidden_size]`.
  MatrixView<T> states(Index l, Stream& stream) const {
    return model::resized(stream.x[static_cast<std::size_t>(l)], stream.count(),
                          design_.hidden_size);
  }
  /// Hidden dropout of `x`, rows of `stream`, in place: numbers of `place` in layer `l`.
  void drop(DropoutPlace place, Index l, const Stream& stream, MatrixView<T> x) const;
  /// Rotary tables of the chunk's positions.
  model::RotaryTables<T>& rotary() { return tape_.rotary; }

  // streams_forward.hpp
  /// How streams go through the layers.
  model::StreamFlow flow() const;
  /// All rows of the chunk.
  Stream& content() { return tape_.content; }
  /// The second stream; used with Tape::split.
  Stream& selected() { return tape_.selected; }
  /// The tokens of content().
  std::span<const TokenId> content_ids() const { return tape_.content.ids; }
  /// The rows whose last states are wanted.
  std::span<const Index> wanted() const { return chunk_.wanted; }
  /// Whether the last layer makes the wanted rows alone, as selected().
  bool ends_narrow() const { return tape_.split && flow() == model::StreamFlow::kOneStream; }
  /// Whether keys and values of every layer come from the embeddings: T-TA.
  bool fixed_keys() const { return design_.streams == model::Streams::kFixedKeys; }
  /// Whether there is a query stream: XLNet.
  bool two_streams() const { return design_.streams == model::Streams::kTwo; }
  /// Whether there are two towers.
  bool two_towers() const { return design_.streams == model::Streams::kTowers; }
  /// Whether separate queries start from [MASK]: always.
  static bool starts_from_mask() { return true; }
  /// The token [MASK]; 0 of a design without one.
  TokenId mask_token() const { return design_.mask_token_id.value_or(0); }
  /// Nobody looks at states.
  static void show_states(Index /*state*/, const Stream& /*stream*/) {}
  /// Adds what layer `l` made of `stream` to Tape::magnitudes, if they are wanted.
  void show_layer(Index l, Stream& stream) const;
  /// Whether somebody looks at states: no.
  static bool shows() { return false; }
  /// The norm after the last layer; nullptr: none.
  const TrainedNorm<T>* final_norm() const { return present(encoder_.final_norm_); }
  /// Memory of the shape of `last` for the states in front of the final norm.
  MatrixView<T> unnormed(MatrixView<T> last) {
    return model::resized(tape_.last, last.rows, last.columns);
  }

  // embed_forward.hpp (encoder_inputs.cpp)
  /// The tables of words, segments and positions.
  model::EmbeddingTables<T> tables() const;
  /// Where `stream` keeps the sum of its embeddings, and the norm of that.
  std::pair<Matrix<T>*, Matrix<T>*> embedding_memory(Stream& stream) const {
    return {&stream.embedded, &stream.normed};
  }
  /// Puts Tape::given into the rows ExampleChunk::given of `x`, if `stream` is the content.
  void replace_words(const Stream& stream, MatrixView<T> x) const;
  /// Whether the position scheme changes the embeddings.
  bool acts_on_input() const;
  /// The position scheme at work on the embeddings of a `sequence` of `stream`.
  auto input_terms(Stream& stream, Index sequence) {
    return terms(0, stream, stream, sequence, false);
  }
  /// The norm of the embeddings; nullptr: none.
  const TrainedNorm<T>* embedding_norm() const { return present(encoder_.embedding_norm_); }
  /// The projection after it; nullptr: none.
  const Dense<T>* embedding_projection() const {
    return encoder_.projection_.empty() ? nullptr : &encoder_.projection_;
  }

  // soft_mask_forward.hpp (encoder_inputs.cpp)
  /// The rows of the content, for the embeddings of [MASK].
  Stream& masked() { return tape_.soft_mask.masked; }
  /// What soft masking keeps.
  model::SoftMaskMemory<T>& soft_mask() { return tape_.soft_mask; }
  /// `logits` `[rows, 1]` ← what the detector makes of the embeddings `e` `[rows, hidden_size]`.
  void detect(MatrixView<const T> e, MatrixView<T> logits);
  /// Nobody looks at probabilities.
  static void show_detections() {}

  // latent_forward.hpp (encoder_inputs.cpp)
  /// What the bottleneck at layer `l` keeps.
  LatentTape<T>& latent_memory(Index l) {
    return tape_.latents[static_cast<std::size_t>(l - model::first_latent_layer(design_))];
  }
  /// Whether the chunk has the first row of a sequence: always.
  static bool has_first_row(Index /*s*/) { return true; }
  /// The point that a caller gives for a sequence: none.
  static std::span<const double> given_latent(Index /*l*/, Index /*s*/) { return {}; }
  /// The noise of sequence `s` at layer `l`; without data unless DropoutOptions::draws_latents.
  nn::SphereNoise<T> latent_noise(Index l, Index s);
  /// Nobody looks at points.
  static void show_latents(Index /*l*/) {}

  // layer_forward.hpp
  /// Memory, `[rows, columns]`, of what the second product of a feed-forward layer reads: in `own`;
  /// large models share one.
  MatrixView<T> active_memory(model::LayerMemory<T>& own, Index rows, Index columns) const;
  /// Whether a layer goes without attention: never.
  static bool skips_attention(Index /*l*/) { return false; }
  /// What mixes tokens in place of attention; nullptr: attention does.
  const nn::Mixer* mixer() const { return encoder_.mixer_; }
  /// Queries of layer `l` from `input`, rows of `stream`; keys and values from the same where
  /// `source` is that stream, else from `source_input`, rows of `source`. Views of memory().
  model::Projected<T> project(Index l, Stream& stream, Stream& source, MatrixView<const T> input,
                              MatrixView<const T> source_input);
  /// Keeps in memory(l, `stream`) what layer `l` projects of the distances; nothing of designs
  /// without.
  void project_distances(Index l, Stream& stream);
  /// `context` `[rows, heads · value size]` ← the attention of layer `l`, with `heads`, of the rows
  /// of `stream` to those of `source`, from `projected`.
  void attend(Index l, Stream& stream, Stream& source, const HeadSizes& heads,
              const model::Projected<T>& projected, MatrixView<T> context);
  /// `context` `[rows, heads · value size]` ← the attention of layer `l` to Tape::source, of
  /// queries that are made of `input`, rows of `stream`.
  void read_source(Index l, Stream& stream, MatrixView<const T> input, MatrixView<T> context);
  /// `y` ← what the mixer of layer `l` makes of `x`, rows of `stream`, sequence by sequence.
  void mix(Index l, Stream& stream, MatrixView<const T> x, MatrixView<T> y);

 private:
  // encoder_run.cpp
  void make_streams();
  bool recomputes() const;
  void backward_layers(Index lowest);
  /// Adds to the gradients of the last states of both towers.
  void part_towers(MatrixView<const T> d_last);

  // encoder_inputs.cpp
  void embed_backward(Stream& stream, MatrixView<T> d_x);
  /// The chunk as the detector reads it: states for all tokens, and all wanted.
  ExampleChunk detector_chunk() const;
  DropoutOptions detector_dropout() const;
  /// From the layers' input and the residual to detector and embeddings.
  void soft_mask_backward(MatrixView<const T> d_last);
  /// Draws the noise of all bottlenecks.
  void make_latents();
  /// d: the gradient of the states that layer l reads; becomes that of those in front of its
  /// bottleneck.
  void latent_backward(Index l, MatrixView<T> d);

  // encoder_layers.cpp: m as of model::layer_forward. d_x and d_m are added to; they may
  // be the same.
  void layer_backward(Index l, Stream& stream, Stream& source, MatrixView<const T> m,
                      MatrixView<const T> d_out, MatrixView<T> d_x, MatrixView<T> d_m);
  /// Views of the matrices that project() fills, `same` as there; `both` absent: next to the
  /// queries.
  model::Projected<T> projected(LayerTape<T>& tape, bool same) const;
  model::Projected<T> parts_of(MatrixView<T> query, std::optional<MatrixView<T>> both) const;
  /// The backward pass through attention and what it reads. `input`: what the projections read, of
  /// pre-norm layers the normed states.
  void attention_backward(Index l, Stream& stream, Stream& source, MatrixView<const T> input,
                          MatrixView<const T> m, MatrixView<const T> d_context,
                          MatrixView<T> d_input, MatrixView<T> d_m);
  /// The backward pass of model::add_source_attention() (encoder_source.cpp): from `d`, the
  /// gradient by what it gave, to the one by what it read, which is returned; pre-norm in `d`
  /// itself.
  MatrixView<T> add_source_backward(Index l, Stream& stream, MatrixView<T> d);
  void gated_backward(Index l, Stream& stream, Stream& source, MatrixView<const T> m,
                      MatrixView<const T> d_out, MatrixView<T> d_x, MatrixView<T> d_m);
  /// The backward pass through what reads the layer's input; `normed` and d_normed are those of
  /// pre-norm.
  void gated_input_backward(Index l, MatrixView<const T> x, MatrixView<const T> normed,
                            MatrixView<const T> d_raw, MatrixView<T> d_normed, MatrixView<T> d_x);
  /// d_branch (which is added to) ← the gradient of what a part of a layer gives, from that of the
  /// residual: model::add_branch backward. `branch` is what was kept of it.
  void branch_backward(Index l, const TrainedNorm<T>* norm, Role scale, const Matrix<T>& branch,
                       MatrixView<const T> d_sum, MatrixView<T> d_branch);
  /// d_x (which is added to) ← the gradient of the states x that the residual α x has, of d_sum;
  /// `scale`: the role of ω, where that stands in place of α.
  void residual_backward(Index l, double alpha, Role scale, MatrixView<const T> x,
                         MatrixView<const T> d_sum, MatrixView<T> d_x);
  /// d_x is added to.
  void feed_forward_backward(Index l, LayerTape<T>& tape, MatrixView<const T> x,
                             MatrixView<const T> d_y, MatrixView<T> d_x);
  /// The backward pass of model::experts_forward() (encoder_experts.cpp); d_x is added to.
  void experts_backward(Index l, model::ExpertMemory<T>& memory, MatrixView<const T> x,
                        MatrixView<const T> d_y, MatrixView<T> d_x);
  void mix_backward(Index l, Stream& stream, MatrixView<const T> x, MatrixView<const T> d_y,
                    MatrixView<T> d_x);
  /// d_sum ← the gradient by y as it was; d_x is added to.
  void convolve_backward(Index l, Stream& stream, MatrixView<const T> x, MatrixView<const T> d_y,
                         MatrixView<T> d_sum, MatrixView<T> d_x);

  // encoder_attention.cpp
  /// The offset of the normalizer of a layer whose heads learn a scale of scores.
  std::optional<double> score_offset(Index l) const;
  /// A position scheme at work, and what it borrows.
  struct Terms {
    std::vector<MatrixView<const T>> values;
    std::vector<MatrixView<T>> gradients;
    std::vector<Index> counted;                 ///< result of model::counted_positions
    std::unique_ptr<nn::PositionTerms<T>> own;  ///< nullptr: none

    nn::PositionTerms<T>* operator->() const { return own.get(); }
  };
  /// `d_projected` is filled, in the shape of what attention read.
  /// With Encoder::stop_at_blocks so are keys and values of `d_earlier`: what those of earlier
  /// blocks get.
  void attend_backward(Index l, Stream& stream, Stream& source, const HeadSizes& heads,
                       const model::Projected<T>& projected, MatrixView<const T> context,
                       MatrixView<const T> d_context, const model::Projected<T>& d_projected,
                       const model::Projected<T>& d_earlier);
  /// From gradients by rotated queries, keys and values to those before the rotation.
  void rotation_backward(Index l, Stream& stream, Stream& source, const HeadSizes& heads,
                         const model::Projected<T>& d_projected,
                         const model::Projected<T>& d_earlier);
  /// Queries and keys in front of their norms, and values. All are within Design::clip_qkv, unless
  /// it bounds queries and keys after their norms.
  struct Raw {
    MatrixView<const T> query, key, value;
  };
  /// The backward pass of model::bound_and_norm(), in place.
  void bound_and_norm_backward(Index l, const HeadSizes& heads, const Raw& raw,
                               const model::Projected<T>& d_projected,
                               const model::Projected<T>& d_earlier);
  /// The first row of the block of each query of a sequence.
  std::vector<Index> block_begins(const Stream& stream, const Stream& source, Index sequence) const;
  /// The attention of one sequence at work.
  struct Sequence {
    Index begin = 0, count = 0;        ///< rows of the stream
    Index source_begin = 0, keys = 0;  ///< rows of what is read
    Terms terms;
    nn::DifferentiableAttention<T> attention;
    std::vector<Index> own_keys;  ///< DifferentiableBackward::own_keys
  };
  std::vector<Sequence> sequences(Index l, Stream& stream, Stream& source, const HeadSizes& heads,
                                  const model::Projected<T>& projected, bool gradients);
  /// The same of attention to Tape::source (encoder_source.cpp).
  std::vector<Sequence> source_sequences(Index l, Stream& stream) const;
  /// `context` ← the attention of `all`, of which `saved` keeps [heads, rows] for backward_of(). T
  /// is float or double.
  void attend_sequences(std::span<const Sequence> all, Matrix<T>& saved,
                        MatrixView<T> context) const;
  /// The backward pass of `one` from what attend_sequences() left in `saved` and `context`, to its
  /// rows of `d_projected`.
  static nn::DifferentiableBackward<T> backward_of(const Sequence& one, Matrix<T>& saved,
                                                   MatrixView<const T> context,
                                                   MatrixView<const T> d_context,
                                                   const model::Projected<T>& d_projected);
  /// The item of random numbers of the sequence that begins at row `begin`, for dropout of weights.
  std::uint64_t dropout_item(Index begin) const {
    constexpr std::uint64_t kItemsOfStep = 1000003;  // a step has fewer rows than that
    return dropout_.step * kItemsOfStep + static_cast<std::uint64_t>(dropout_.first_row + begin);
  }
  const mask::BlockMap* blocks(Index l, Stream& stream, Index sequence);
  /// `source`: whose positions the keys have.
  Terms terms(Index l, Stream& stream, const Stream& source, Index sequence, bool gradients);
  /// What attention_backward has found for keys and values of earlier blocks, to the weights that
  /// made them. m: the states, `normed` those of pre-norm.
  void earlier_backward(Index l, MatrixView<const T> m, MatrixView<const T> normed);
  bool stops_at_blocks() const { return encoder_.block_size_ > 0; }
  void make_distances();
  void distances_backward();
  void clear_distance_gradients(Index l);
  void project_distances_backward(Index l);
  void measure(std::span<const Sequence> all, const LayerTape<T>& tape);
  void materialized_forward(Index l, Stream& stream, std::span<Sequence> all,
                            MatrixView<T> context);
  void materialized_backward(Index l, Stream& stream, std::span<Sequence> all,
                             MatrixView<const T> d_context, const model::Projected<T>& d_projected);
  /// The attention of a sequence, with the scores of the layer before as views of the tape, or of
  /// `perturbed` where they get noise or dropout.
  nn::MaterializedAttention<T> materialized(Index l, const Stream& stream, std::size_t sequence,
                                            const Sequence& one,
                                            std::vector<MatrixView<const T>>& previous,
                                            std::vector<Matrix<T>>& perturbed) const;
  bool perturbs_scores() const { return dropout_.score_noise > 0 || dropout_.score_dropout > 0; }
  /// Calls work(purpose's random stream, first number, row) for every row of a head's scores; no
  /// cut into chunks changes the numbers.
  template <class Work>
  void for_score_rows(std::string_view purpose, Index l, const Stream& stream, const Sequence& one,
                      Index head, MatrixView<T> scores, const Work& work) const;
  void drop_scores_backward(Index l, const Stream& stream, const Sequence& one,
                            std::span<Matrix<T>> d_scores) const;

  // Parameters.
  Index weights_of(Index l) const { return design_.layers[static_cast<std::size_t>(l)].weights; }
  static const TrainedNorm<T>* present(const TrainedNorm<T>& norm) {
    return norm.present() ? &norm : nullptr;
  }
  MatrixView<T> value(Index parameter) const;
  MatrixView<T> gradient(Index parameter) const;
  std::span<T> vector_gradient(Index parameter) const;
  /// Calls work(random stream, first, rows) with pieces of x and the number of their first element
  /// in the step, which no cut into chunks changes; nothing without dropout.
  template <class Work>
  void for_dropped(DropoutPlace place, Index l, const Stream& stream, MatrixView<T> x,
                   const Work& work) const;
  void drop_backward(DropoutPlace place, Index l, const Stream& stream, MatrixView<T> x) const;
  RandomStream stream_of(DropoutPlace place, Index l, const Stream& stream) const;
  /// A matrix of this shape in memory that is kept; the content is undefined.
  MatrixView<T> scratch(std::size_t which, Index rows, Index columns) const;
  MatrixView<T> zeros(std::size_t which, Index rows, Index columns) const;

  const Encoder<T>& encoder_;
  const model::Design& design_;
  const ExampleChunk& chunk_;
  const DropoutOptions& dropout_;
  Tape<T>& tape_;
  /// Gradients of distance_keys and distance_queries, in the backward pass through a layer.
  MatrixView<T> d_distance_keys_, d_distance_queries_;
  /// RealFormer, of the next layer: of the content and of the query stream, by sequence.
  std::array<std::vector<std::vector<Matrix<T>>>, 2> d_scores_;
};

/// `x` ← 0.
template <class T>
void zero_rows(MatrixView<T> x) {
  kernel::for_rows(x.rows, x.columns, [&](Index i) { std::fill_n(x.row(i), x.columns, T{}); });
}

}  // namespace masque::train
