// What a forward pass leaves for the backward pass. Memory is kept from chunk to chunk.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "model/forward/latent_forward.hpp"
#include "model/forward/layer_memory.hpp"
#include "model/forward/rotary_tables.hpp"
#include "model/forward/soft_mask_forward.hpp"
#include "model/forward/stream_masks.hpp"
#include "nn/materialized_attention.hpp"
#include "nn/position_scheme.hpp"
#include "tensor/matrix.hpp"
#include "train/network/diversity.hpp"
#include "train/network/layer_magnitudes.hpp"

namespace masque::train {

/// One layer of a stream.
template <class T>
struct LayerTape : model::LayerMemory<T> {
  Matrix<T> saved;                                     ///< of attention, for its backward pass
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

/// Of an encoder with a detector.
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

/// Of a latent bottleneck.
template <class T>
struct LatentTape : model::LatentMemory<T> {
  double kappa = 0;             ///< concentration that they were drawn with
  std::vector<double> cosines;  ///< SphereNoise's, one a sequence
  std::vector<double> slopes;   ///< derivatives of these by κ; empty unless it is learned
  Matrix<double> normal;        ///< SphereNoise's, [sequences, size]
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
  SoftMaskTape<T> soft_mask;           ///< of an encoder with a detector
  std::vector<LatentTape<T>> latents;  ///< one a bottleneck
  model::StreamMasks masks;            ///< of the layers that have run
  model::RotaryTables<T> rotary;       ///< of the chunk's positions
  Matrix<T> last;                      ///< before the final norm, one row a wanted row
  Index first_distance = 0;            ///< XLNet: of row 0 of `distances`
  Matrix<T> distances;                 ///< what is projected: XLNet's sinusoids, DeBERTa's table
  Matrix<T> d_distances;               ///< gradient by `distances`
  /// Of an encoder that measures: sums over the attention matrices of the pass.
  std::array<Wide<T>, kDiversities> diversity{};
  /// What the loss changes with the measures of one of them: given for the backward pass.
  Diversities diversity_slopes{};
  /// States of other networks, one row for each of ExampleChunk::given: given for the forward pass.
  Matrix<T> given;
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

}  // namespace masque::train
