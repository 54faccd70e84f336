// One pass of a chunk through the layers.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "model/chunk.hpp"
#include "model/masks.hpp"
#include "model/model.hpp"
#include "model/position_terms.hpp"
#include "model/prepared.hpp"
#include "model/repeats.hpp"
#include "nn/attention.hpp"

namespace masque::model {

/// What a pass is given besides model and batch.
struct PassSettings {
  mask::KeySource keys = mask::KeySource::kLayer;
  mask::QueryStart query = mask::QueryStart::kToken;
  TokenId mask_token_id = 0;  ///< of QueryStart::kPosition
  std::shared_ptr<const nn::Normalizer> normalizer;
};

enum class StreamKind {
  kContent,       ///< all rows of the chunk
  kSelectedRows,  ///< the wanted rows, under the same masks
  kQuery,         ///< XLNet's g: rows under the batch's query masks
};

/// Rows that go through the layers together.
template <class T>
struct Stream {
  StreamKind kind = StreamKind::kContent;
  Matrix<T> x;                ///< (rows, hidden size)
  std::vector<Index> begins;  ///< rows of each sequence, and the end
  std::vector<Index> rows;    ///< of the chunk, where these are not all
  std::vector<Index> positions;
  std::vector<Index> segments;

  Index count() const { return x.rows(); }
};

/// Memory that every layer fills anew, kept from chunk to chunk by each thread.
template <class T>
struct PassMemory {
  Matrix<T> normed, query, key_value, context, attended, wide, relative;

  /// That of this thread.
  static PassMemory& own();
  /// Gives memory back that only an unusually large chunk needs.
  void shrink();
};

/// The work on one chunk. For one thread, or called outside a parallel region by one.
template <class T>
class Pass {
 public:
  Pass(const PreparedModel<T>& model, const LayerMasks& masks, const PassSettings& settings,
       const Batch& batch, const Request& request, Observer* observer, const Chunk& chunk);

  /// Fills `last`: the last states of the chunk's wanted rows, after the final norm.
  void run(MatrixView<T> last);

 private:
  // Embeddings (embed.cpp).
  Stream<T> all_rows() const;
  Stream<T> wanted_rows(StreamKind kind) const;
  void embed(std::span<const TokenId> ids, Stream<T>& stream) const;
  void copy_rows(const Stream<T>& from, Stream<T>& to) const;
  std::span<const TokenId> ids() const;

  // Layers (layer.cpp).
  void project_keys_values(Index layer, const Stream<T>& source);
  void layer_forward(Index layer, Stream<T>& stream);
  void attention_block(Index layer, const Stream<T>& stream, MatrixView<const T> x);
  void feed_forward(const PreparedLayer<T>& weights, MatrixView<const T> x, MatrixView<T> y);
  /// y = linear(x) for the rows of `stream` as layer `layer` finds them.
  void project(const kernel::Linear<T>& linear, Index layer, const Stream<T>& stream,
               MatrixView<const T> x, MatrixView<T> y) const;
  void apply_rotary(Index layer, const Stream<T>& stream, Index head_size, MatrixView<T> x);
  const kernel::RotaryTable<T>& rotary_table(const RotaryDesign& rotary, const Stream<T>& stream);
  void convolve(const PreparedLayer<T>& weights, MatrixView<const T> before, Stream<T>& after);

  // Variants (variant_layer.cpp).
  /// x + what the position scheme adds to the input; x (rows of the stream, all of each sequence).
  void act_on_input(const Stream<T>& stream, MatrixView<T> x) const;
  /// Attention beyond nn::AttentionProblem; `terms` may be null.
  void attend_general(Index layer, const Stream<T>& stream, Index sequence,
                      const nn::AttentionProblem<T>& problem, nn::PositionTerms<T>* terms,
                      MatrixView<T> context, const nn::WeightsVisitor<T>& visit);
  /// Fills scratch_.context.
  void mix(Index layer, const Stream<T>& stream, MatrixView<const T> x);
  /// Whether each row of a stream needs all others besides keys and values.
  bool needs_all_rows() const;
  /// x ← α x of DeepNorm.
  void scale_residual(MatrixView<T> x) const;

  // GAU (gated_layer.cpp).
  void gated_project_keys_values(Index layer, const Stream<T>& source);
  void gated_layer_forward(Index layer, Stream<T>& stream);
  MatrixView<const T> gated_normed(const PreparedLayer<T>& weights, MatrixView<const T> x);
  void gated_add(const PreparedLayer<T>& weights, MatrixView<T> x) const;
  Matrix<T> scaled_keys(const PreparedLayer<T>& weights, Index which, MatrixView<const T> z) const;

  // Attention (attend.cpp).
  struct Shape {
    Index heads = 1;
    Index key_heads = 1;
    Index head_size = 0;
    double scale = 1;
  };
  void attend(Index layer, const Stream<T>& stream, const Shape& shape, MatrixView<const T> query,
              MatrixView<T> context);
  void attend_sequence(Index layer, const Stream<T>& stream, const Shape& shape,
                       MatrixView<const T> query, Index sequence, const mask::BlockMap* blocks,
                       MatrixView<T> context);
  /// The position terms of a sequence of a layer, if it has any; `counted` keeps what they point
  /// to.
  std::unique_ptr<nn::PositionTerms<T>> terms(Index layer, const Stream<T>& stream, Index sequence,
                                              std::vector<Index>& counted) const;
  const std::vector<std::shared_ptr<const mask::BlockMap>>& blocks(Index layer,
                                                                   const Stream<T>& stream);
  void project_relative(const PreparedLayer<T>& weights);

  void show_states(Index state, const Stream<T>& stream) const;
  void run_one_stream(MatrixView<T> last);
  void run_fixed_start(MatrixView<T> last);
  void run_two_streams(MatrixView<T> last);
  void finish(const Stream<T>& stream, MatrixView<T> last) const;
  AttentionOverride override_of(Index layer) const {
    return request_.attention.empty() ? AttentionOverride::kIntact
                                      : request_.attention[static_cast<std::size_t>(layer)];
  }
  bool shows() const { return request_.hidden_states || request_.attentions; }

  const PreparedModel<T>& model_;
  const Design& design_;
  const LayerMasks& masks_;
  const PassSettings& settings_;
  const Batch& batch_;
  const Request& request_;
  Observer* observer_;
  const Chunk& chunk_;

  Stream<T> content_;  ///< all rows: the source of keys and values
  Repeats repeats_;    ///< of the rows of content_ before the first layer

  const nn::Normalizer* normalizer_;
  PassMemory<T>& scratch_;
  MatrixView<const T> key_, value_;
  /// Layers with the same angles share the table of a stream.
  struct Rotated {
    StreamKind kind;
    const RotaryDesign* rotary;
    std::unique_ptr<kernel::RotaryTable<T>> table;
  };
  std::vector<Rotated> rotated_;
  XlnetDistances<T> distances_;  ///< of all sequences, for every layer
  /// RealFormer: of every sequence the scores of each head in the layer before.
  std::map<StreamKind, std::vector<std::vector<Matrix<T>>>> previous_;
  /// Of every sequence, by kind of mask and stream.
  std::map<std::pair<std::size_t, StreamKind>, std::vector<std::shared_ptr<const mask::BlockMap>>>
      blocks_;
};

}  // namespace masque::model
