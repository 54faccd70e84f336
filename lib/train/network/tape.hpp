// What a forward pass leaves for the backward pass. Memory is kept from chunk to chunk.
#pragma once

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
  Matrix<T> embedded, normed;        ///< in front of the embedding norm, and after it
};

template <class T>
struct Tape;

/// Of an encoder with a detector.
template <class T>
struct SoftMaskTape : model::SoftMaskMemory<T> {
  StreamTape<T> masked;                 ///< the embeddings of [MASK]
  std::unique_ptr<Tape<T>> detector;    ///< its own
  Matrix<T> last;                       ///< its last states
  Matrix<T> d_logits;                   ///< the loss's by them: 0 after the forward pass
  Matrix<T> d_last, d_plain, d_masked;  ///< of the backward pass
};

/// Of a latent bottleneck.
template <class T>
struct LatentTape : model::LatentMemory<T> {
  double kappa = 0;                     ///< what they were drawn with
  std::vector<double> cosines, slopes;  ///< of nn::SphereNoise, one a sequence, and by κ
  Matrix<double> normal;                ///< the same, a row a sequence
};

template <class T>
struct Tape {
  StreamTape<T> content, selected;
  /// Each stream has the memory of one layer alone, which the backward pass fills again from
  /// StreamTape::x.
  bool recomputes = false;
  bool split = false;  ///< `selected` is used: T-TA, two streams, or a last layer of wanted rows
  SoftMaskTape<T> soft_mask;
  std::vector<LatentTape<T>> latents;  ///< one a bottleneck
  model::StreamMasks masks;
  model::RotaryTables<T> rotary;
  Matrix<T> last;                    ///< before the final norm
  Index first_distance = 0;          ///< XLNet: of row 0 of `distances`
  Matrix<T> distances, d_distances;  ///< what is projected: XLNet's sinusoids, DeBERTa's table
  /// Of an encoder that measures: sums over the attention matrices of the pass, forward; and what
  /// the loss changes with the measures of one of them, which the backward pass is given.
  std::array<Wide<T>, kDiversities> diversity{};
  Diversities diversity_slopes{};
  /// Forward: states of other networks, one for each of ExampleChunk::given; back: the gradients by
  /// them.
  Matrix<T> given, d_given;
  bool wants_given = true;  ///< whether these gradients are made
  /// Forward: where there is a place for it, each layer's are added; not of two towers.
  std::vector<LayerMagnitudes>* magnitudes = nullptr;
  // Gradients, of the backward pass.
  Matrix<T> d_content, d_query, d_state;
  std::vector<Matrix<T>> scratch;
};

}  // namespace masque::train
