// One pass of a chunk through the layers.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

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
#include "model/repeats.hpp"
#include "nn/attention.hpp"

namespace masque::model {

/// What a pass is given besides model and batch.
struct PassSettings {
  mask::KeySource keys = mask::KeySource::kLayer;
  mask::QueryStart query = mask::QueryStart::kToken;
  TokenId mask_token_id = 0;  ///< of QueryStart::kPosition
  std::vector<std::shared_ptr<const nn::AttentionNormalizer>> normalizers;  ///< of each layer
  const LayerMasks* detector_masks = nullptr;  ///< of the model's detector

  /// Whether rows start as their tokens and read their own layers, as most models do.
  bool reads_own_layers() const {
    return keys == mask::KeySource::kLayer && query == mask::QueryStart::kToken;
  }
};

/// Rows that go through the layers together, and their states.
template <class T>
struct Stream : StreamRows {
  Matrix<T> x;  ///< (rows, hidden size)
};

/// Memory that every layer fills anew, kept from chunk to chunk by each thread.
template <class T>
struct PassMemory {
  LayerMemory<T> layer;

  /// That of this thread.
  static PassMemory& own();
  /// Gives memory back that only an unusually large chunk needs.
  void shrink();
};

/// The work on one chunk. For one thread, or called outside a parallel region by one. Apart
/// from run(), what is public is for the templates of forward.hpp.
template <class T>
class Pass {
 public:
  using Number = T;
  using Stream = model::Stream<T>;
  static constexpr bool kKeeps = false;

  /// `cache`: what the sequences begin with, extended by the batch; or nullptr.
  Pass(const PreparedModel<T>& model, const LayerMasks& masks, const PassSettings& settings,
       const Batch& batch, const Request& request, Observer* observer, const Chunk& chunk,
       KeyValues<T>* cache);

  /// Fills `last`: the last states of the chunk's wanted rows, after the final norm.
  void run(MatrixView<T> last);
  /// Whether a state or an attention weight that the observer was given is NaN or infinite. After
  /// run().
  bool overflowed() const { return overflowed_.load(std::memory_order_relaxed); }

  const Design& design() const { return design_; }
  const PreparedLayer<T>& layer(Index l) const { return model_.layer(l); }
  MatrixView<const T> matrix(Role role, Index l) const;
  LayerMemory<T>& memory(Index /*l*/, const Stream& /*stream*/) { return memory_; }
  /// One matrix: what a layer makes takes the place of what it reads.
  MatrixView<T> states(Index /*l*/, Stream& stream) {
    return resized(stream.x, stream.count(), design_.hidden_size);
  }
  void drop(DropoutPlace /*place*/, Index /*l*/, const Stream& /*stream*/, MatrixView<T> /*x*/) {}
  RotaryTables<T>& rotary() { return rotary_; }

  // streams_forward.hpp (pass.cpp)
  StreamFlow flow() const { return flow_; }
  Stream& content() { return content_; }
  Stream& selected() { return selected_; }
  std::span<const TokenId> content_ids() const;
  std::span<const Index> wanted() const { return chunk_.wanted; }
  bool ends_narrow() const { return ends_narrow_; }
  bool fixed_keys() const { return settings_.keys == mask::KeySource::kInput; }
  bool starts_from_mask() const { return settings_.query == mask::QueryStart::kPosition; }
  TokenId mask_token() const { return settings_.mask_token_id; }
  void show_states(Index state, const Stream& stream) const;
  bool shows() const { return request_.hidden_states || request_.attentions; }
  const PreparedNorm<T>* final_norm() const { return present(model_.final_norm); }
  MatrixView<T> unnormed(MatrixView<T> last) const { return last; }

  // embed_forward.hpp
  EmbeddingTables<T> tables() const;
  std::pair<Matrix<T>*, Matrix<T>*> embedding_memory(const Stream& /*stream*/) const { return {}; }
  void replace_words(const Stream& stream, MatrixView<T> x) const;
  bool acts_on_input() const { return model_.scheme_facts.input; }
  std::unique_ptr<nn::PositionTerms<T>> input_terms(const Stream& stream, Index sequence) const;
  const PreparedNorm<T>* embedding_norm() const { return present(model_.embedding_norm); }
  const kernel::Linear<T>* embedding_projection() const {
    return model_.embedding_projection.empty() ? nullptr : &model_.embedding_projection;
  }

  // soft_mask_forward.hpp (pass.cpp)
  Stream& masked() { return masked_; }
  SoftMaskMemory<T>& soft_mask() { return soft_mask_; }
  void detect(MatrixView<const T> e, MatrixView<T> logits) const;
  void show_detections() const;

  // latent_forward.hpp (pass.cpp)
  LatentMemory<T>& latent_memory(Index /*l*/) { return latent_; }
  bool has_first_row(Index s) const {
    return cache_ == nullptr || cached_.count(s) == content_.count(s);
  }
  std::span<const double> given_latent(Index l, Index s) const;
  static nn::SphereNoise<T> latent_noise(Index /*l*/, Index /*s*/) { return {}; }
  void show_latents(Index l) const;

  // layer_forward.hpp (pass_layer.cpp, pass_attend.cpp)
  Index panel_rows() const;
  bool skips_attention(Index l) const { return override_of(l) == AttentionOverride::kZero; }
  const nn::Mixer* mixer() const { return model_.mixer; }
  /// Of two streams the second one takes the keys and values that were made for the first.
  Projected<T> project(Index l, const Stream& stream, const Stream& source,
                       MatrixView<const T> input, MatrixView<const T> source_input);
  void project_distances(Index l, const Stream& stream);
  void attend(Index l, const Stream& stream, const Stream& source, const HeadSizes& heads,
              const Projected<T>& projected, MatrixView<T> context);
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
  StreamRows cached_;  ///< with a cache: all tokens of the sequences
  StreamRows added_;   ///< of these the rows of content_

  StreamFlow flow_ = StreamFlow::kOneStream;
  bool ends_narrow_ = false;
  Stream content_;   ///< all rows: the source of keys and values
  Stream selected_;  ///< what starts or ends elsewhere: wanted rows, or all
  Repeats repeats_;  ///< of the rows of content_ before the first layer

  Stream masked_;  ///< of a model with a detector
  SoftMaskMemory<T> soft_mask_;
  MatrixView<const T> given_;  ///< of a detector: what it reads
  LatentMemory<T> latent_;

  LayerMemory<T>& memory_;
  Index keys_layer_ = -1;  ///< whose keys and values the memory holds
  RotaryTables<T> rotary_;
  XlnetDistances<T> distances_;  ///< of all sequences, for every layer
  /// RealFormer: of every sequence the scores of each head in the layer before.
  std::map<StreamKind, std::vector<std::vector<Matrix<T>>>> previous_;
  StreamMasks masks_of_streams_;
};

}  // namespace masque::model
