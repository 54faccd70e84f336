// One pass of a chunk through the layers.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernel/product/linear.hpp"
#include "model/chunk.hpp"
#include "model/forward/attention_inputs.hpp"
#include "model/forward/embedding_sum.hpp"
#include "model/forward/forward.hpp"
#include "model/forward/layer_memory.hpp"
#include "model/forward/rotary_tables.hpp"
#include "model/forward/stream_masks.hpp"
#include "model/forward/streams_forward.hpp"
#include "model/key_value_cache.hpp"
#include "model/masks.hpp"
#include "model/model.hpp"
#include "model/prepared.hpp"
#include "nn/attention/attention.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

// Rows that enter the first layer alike.

/// Rows of a chunk that hold the same token at the same position in the same segment, as in the
/// masked copies of a sentence: what depends on the row alone is computed once. The same bits as
/// without, since no row of a product depends on the others.
class Repeats {
 public:
  /// None: every row for itself.
  Repeats() = default;
  /// Finds the rows with equal `ids`, `positions` and `segments`, one each a row; `segments` may be
  /// empty. Nothing is borrowed.
  Repeats(std::span<const TokenId> ids, std::span<const Index> positions,
          std::span<const Index> segments);

  /// Whether enough rows repeat for the copies to pay: at least a quarter of them.
  bool pay() const { return !of_.empty() && first_.size() * 4 <= of_.size() * 3; }
  /// `y` = `linear`(`x`), where `x` has a row for each given one, equal where they are alike.
  template <class T>
  void forward(const kernel::Linear<T>& linear, MatrixView<const T> x, MatrixView<T> y) const;

 private:
  std::vector<Index> first_;  ///< the first row of each set of equal rows
  std::vector<Index> of_;     ///< for each row, its number in first_
};

/// What a pass is given besides model and batch, the same for all chunks.
struct PassSettings {
  mask::KeySource keys = mask::KeySource::kLayer;     ///< what later layers read
  mask::QueryStart query = mask::QueryStart::kToken;  ///< what selected rows start from
  TokenId mask_token_id = 0;                          ///< for QueryStart::kPosition
  /// Normalizer of each layer.
  std::vector<std::shared_ptr<const nn::AttentionNormalizer>> normalizers;
  const LayerMasks* detector_masks = nullptr;  ///< masks of the model's detector

  /// Whether rows start as their tokens and read their own layers, as most models do.
  bool reads_own_layers() const {
    return keys == mask::KeySource::kLayer && query == mask::QueryStart::kToken;
  }
};

/// The states of an encoder that the sequences of a batch read (SourceDesign).
template <class T>
struct SourceStates {
  Matrix<T> states;           ///< (tokens of all sources, hidden size)
  std::vector<Index> begins;  ///< the first row of each sequence's source, and the end
};

/// Rows that go through the layers together, and their states.
template <class T>
struct Stream : StreamRows {
  Matrix<T> x;  ///< (rows, hidden size)
};

/// Memory that every layer fills anew, kept from chunk to chunk by each thread.
template <class T>
struct PassMemory {
  LayerMemory<T> layer;  ///< memory of the layer at work

  /// That of the calling thread.
  static PassMemory& own();
  /// Gives memory back that only an unusually large chunk needs.
  void shrink();
};

/// The work on one chunk. For one thread, or called outside a parallel region by one. Apart
/// from run(), what is public is for the templates of forward.hpp.
template <class T>
class Pass {
 public:
  using Number = T;                      ///< type of states and weights: float or double
  using Stream = model::Stream<T>;       ///< rows and their states
  static constexpr bool kKeeps = false;  ///< nothing is kept for a backward pass

  /// The pass of `chunk` of `batch` through `model` under `masks`, for `request`. `settings` has
  /// one normalizer a layer. `observer` may be nullptr. `cache`: what the sequences begin with,
  /// extended by the batch; or nullptr. `sources`: what a design with SourceDesign reads, of every
  /// sequence of the batch; nullptr: the cache has it. All are borrowed for the life of the pass.
  /// Positions of the batch are numbered already.
  Pass(const PreparedModel<T>& model, const LayerMasks& masks, const PassSettings& settings,
       const Batch& batch, const Request& request, Observer* observer, const Chunk& chunk,
       KeyValues<T>* cache, const SourceStates<T>* sources = nullptr);

  /// Fills `last` (wanted rows of the chunk, last_width()): their last states, after the final
  /// norm. Once. Throws InputError for ids and positions beyond the tables, UsageError for masks
  /// that do not fit.
  void run(MatrixView<T> last);
  /// Whether a state or an attention weight that the observer was given is NaN or infinite. After
  /// run().
  bool overflowed() const { return overflowed_.load(std::memory_order_relaxed); }

  /// The model's design.
  const Design& design() const { return design_; }
  /// The weights of layer `l`.
  const PreparedLayer<T>& layer(Index l) const { return model_.layer(l); }
  /// A parameter of layer `l` that is neither dense layer nor norm, by `role`: one of those that
  /// the templates name (MASQUE_CHECK).
  MatrixView<const T> matrix(Role role, Index l) const;
  /// The memory of the calling thread, one for all layers.
  LayerMemory<T>& memory(Index /*l*/, const Stream& /*stream*/) { return memory_; }
  /// The states (rows, hidden size) of `stream`. One matrix for all layers: what a layer makes
  /// takes the place of what it reads.
  MatrixView<T> states(Index /*l*/, Stream& stream) {
    return resized(stream.x, stream.count(), design_.hidden_size);
  }
  /// No dropout.
  void drop(DropoutPlace /*place*/, Index /*l*/, const Stream& /*stream*/, MatrixView<T> /*x*/) {}
  /// Cosines and sines of the chunk.
  RotaryTables<T>& rotary() { return rotary_; }

  // streams_forward.hpp
  /// How the streams go through the layers.
  StreamFlow flow() const { return flow_; }
  /// All rows of the chunk.
  Stream& content() { return content_; }
  /// The wanted rows, or all, where they are a stream of their own.
  Stream& selected() { return selected_; }
  /// The tokens of the chunk.
  std::span<const TokenId> content_ids() const;
  /// The wanted rows of the chunk, ascending.
  std::span<const Index> wanted() const { return chunk_.wanted; }
  /// Whether the last layer of one stream computes the wanted rows alone.
  bool ends_narrow() const { return ends_narrow_; }
  /// Whether every layer reads the embeddings as keys and values.
  bool fixed_keys() const { return settings_.keys == mask::KeySource::kInput; }
  /// Whether selected rows start from [MASK] and not from their tokens.
  bool starts_from_mask() const { return settings_.query == mask::QueryStart::kPosition; }
  /// [MASK] of starts_from_mask().
  TokenId mask_token() const { return settings_.mask_token_id; }
  /// Gives the observer the states of `stream` in front of layer `state`, or after the last, if
  /// hidden states are requested.
  void show_states(Index state, const Stream& stream) const;
  /// Whether hidden states or attention weights are requested.
  bool shows() const {
    return request_.hidden_states || request_.attentions || request_.source_attentions;
  }
  /// The norm after the last layer; nullptr: none.
  const PreparedNorm<T>* final_norm() const { return present(model_.final_norm); }
  /// `last` itself: states before the final norm are not kept.
  MatrixView<T> unnormed(MatrixView<T> last) const { return last; }

  // embed_forward.hpp
  /// The model's tables.
  EmbeddingTables<T> tables() const;
  /// Two nullptr: nothing is kept.
  std::pair<Matrix<T>*, Matrix<T>*> embedding_memory(const Stream& /*stream*/) const { return {}; }
  /// In a detector, puts the states that it reads into `x`, one row for each of `stream`.
  void replace_words(const Stream& stream, MatrixView<T> x) const;
  /// Whether the position scheme acts on the input.
  bool acts_on_input() const { return model_.scheme_facts.input; }
  /// The scheme at work on the rows of sequence `sequence` in `stream`, whose positions it borrows.
  std::unique_ptr<nn::PositionTerms<T>> input_terms(const Stream& stream, Index sequence) const;
  /// The norm of the embeddings; nullptr: none.
  const PreparedNorm<T>* embedding_norm() const { return present(model_.embedding_norm); }
  /// The projection of the embeddings to the hidden size; nullptr: none.
  const kernel::Linear<T>* embedding_projection() const {
    return model_.embedding_projection.empty() ? nullptr : &model_.embedding_projection;
  }

  // soft_mask_forward.hpp
  /// The rows of the content, for the embeddings of [MASK].
  Stream& masked() { return masked_; }
  /// What soft masking makes of the chunk.
  SoftMaskMemory<T>& soft_mask() { return soft_mask_; }
  /// Runs the detector: `e` (rows, hidden size) to `logits` (rows, 1).
  void detect(MatrixView<const T> e, MatrixView<T> logits) const;
  /// Gives the observer the detector's probabilities, if they are requested.
  void show_detections() const;

  // latent_forward.hpp
  /// One memory for all bottlenecks.
  LatentMemory<T>& latent_memory(Index /*l*/) { return latent_; }
  /// Whether the first row of sequence `s` is in the chunk, and not in the cache.
  bool has_first_row(Index s) const {
    return cache_ == nullptr || cached_.count(s) == content_.count(s);
  }
  /// The point that the batch gives sequence `s` in front of layer `l`; empty: none.
  std::span<const double> given_latent(Index l, Index s) const;
  /// No noise.
  static nn::SphereNoise<T> latent_noise(Index /*l*/, Index /*s*/) { return {}; }
  /// Gives the observer the points in front of layer `l`, if they are requested.
  void show_latents(Index l) const;

  // layer_forward.hpp
  /// Rows that go through both products of a feed-forward layer before the next ones: 512 with
  /// several threads, else 128.
  Index panel_rows() const;
  /// Whether attention of layer `l` adds nothing (AttentionOverride::kZero).
  bool skips_attention(Index l) const { return override_of(l) == AttentionOverride::kZero; }
  /// The mixer in the place of attention; nullptr: none.
  const nn::Mixer* mixer() const { return model_.mixer; }
  /// Queries of `stream` from `input`, keys and values of `source` from `source_input`, in layer
  /// `l`, in the memory of the layer. Of two streams the second one takes the keys and values that
  /// were made for the first.
  Projected<T> project(Index l, const Stream& stream, const Stream& source,
                       MatrixView<const T> input, MatrixView<const T> source_input);
  /// XLNet: projects the sinusoids of distances for layer `l`, the same for every `stream`.
  void project_distances(Index l, const Stream& stream);
  /// `context` (rows of `stream`, context_width()) ← attention of layer `l` with the sizes `heads`,
  /// of the rows `projected` of `stream` and `source`; with a cache, of all rows that it has. Shows
  /// the weights if they are requested.
  void attend(Index l, const Stream& stream, const Stream& source, const HeadSizes& heads,
              const Projected<T>& projected, MatrixView<T> context);
  /// `context` (rows of `stream`, context_width()) ← attention of layer `l` with queries from
  /// `input` over the states of each sequence's source. Shows the weights if they are requested.
  void read_source(Index l, const Stream& stream, MatrixView<const T> input, MatrixView<T> context);
  /// `context` ← the mixer of layer `l` on `x`, both (rows of `stream`, hidden size), sequence by
  /// sequence.
  void mix(Index l, const Stream& stream, MatrixView<const T> x, MatrixView<T> context);

 private:
  void choose_flow();
  static const PreparedNorm<T>* present(const PreparedNorm<T>& norm) {
    return norm.present() ? &norm : nullptr;
  }
  /// y = linear(x) for the rows of `stream` as layer `layer` finds them.
  void project(const kernel::Linear<T>& linear, Index layer, const Stream& stream,
               MatrixView<const T> x, MatrixView<T> y) const;
  void attend_sequence(Index layer, const StreamRows& stream, const HeadSizes& heads,
                       const Projected<T>& projected, Index sequence, const mask::BlockMap* blocks,
                       MatrixView<T> context);
  nn::AttentionProblem<T> problem_of(Index layer, const StreamRows& stream, const HeadSizes& heads,
                                     const Projected<T>& projected, Index sequence) const;
  /// `out` ← the attention of `problem`, of one sequence; `visit` may be empty.
  void evaluate(const nn::AttentionProblem<T>& problem, MatrixView<T> out,
                const nn::WeightsVisitor<T>& visit) const;
  /// Calls work(s) for the sequences of the chunk: several at a time where there are enough.
  template <class Work>
  void each_sequence(const Work& work) const;
  /// Attention beyond nn::AttentionProblem; `terms` may be null.
  void attend_materialized(Index layer, const StreamRows& stream, Index sequence,
                           const nn::AttentionProblem<T>& problem, nn::PositionTerms<T>* terms,
                           MatrixView<T> context, const nn::WeightsVisitor<T>& visit);
  /// The position terms of a sequence of a layer, if it has any; `counted` keeps what they point
  /// to.
  std::unique_ptr<nn::PositionTerms<T>> terms(Index layer, const StreamRows& stream, Index sequence,
                                              std::vector<Index>& counted) const;
  const std::vector<std::shared_ptr<const mask::BlockMap>>& blocks(Index layer,
                                                                   const StreamRows& stream);
  /// What keys and values stand for.
  const StreamRows& read_rows() const { return cache_ != nullptr ? cached_ : content_; }
  AttentionOverride override_of(Index layer) const {
    return request_.attention.empty() ? AttentionOverride::kIntact
                                      : request_.attention[static_cast<std::size_t>(layer)];
  }

  /// Looks at what the observer is given.
  void note_overflow(MatrixView<const T> rows) const;

  const PreparedModel<T>& model_;
  const Design& design_;
  const LayerMasks& masks_;
  const PassSettings& settings_;
  const Batch& batch_;
  const Request& request_;
  Observer* observer_;
  mutable std::atomic<bool> overflowed_{false};  // set by several threads
  const Chunk& chunk_;
  KeyValues<T>* cache_;
  const SourceStates<T>* sources_;
  StreamRows cached_;  ///< with a cache: all tokens of the sequences
  StreamRows added_;   ///< those of them that are rows of content_

  StreamFlow flow_ = StreamFlow::kOneStream;
  bool ends_narrow_ = false;
  Stream content_;   ///< all rows: the source of keys and values
  Stream selected_;  ///< what starts or ends elsewhere: wanted rows, or all
  Repeats repeats_;  ///< equal rows of content_ before the first layer

  Stream masked_;  ///< only in a model with a detector
  SoftMaskMemory<T> soft_mask_;
  MatrixView<const T> given_;  ///< in a detector: what it reads
  LatentMemory<T> latent_;

  LayerMemory<T>& memory_;
  Index keys_layer_ = -1;  ///< whose keys and values the memory holds
  RotaryTables<T> rotary_;
  XlnetDistances<T> distances_;  ///< distances of all sequences, for every layer
  /// RealFormer: of every sequence the scores of each head in the layer before.
  std::map<StreamKind, std::vector<std::vector<Matrix<T>>>> previous_;
  StreamMasks masks_of_streams_;
};

}  // namespace masque::model
