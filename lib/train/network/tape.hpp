// What a forward pass leaves for the way back. Memory is kept from chunk to chunk.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernel/rotary.hpp"
#include "mask/block_map.hpp"
#include "nn/materialized_attention.hpp"
#include "nn/position_scheme.hpp"
#include "tensor/matrix.hpp"
#include "train/loss/diversity.hpp"

namespace masque::train {

/// One layer of a stream; s, u, t of encoder_layer.cpp.
template <class T>
struct LayerTape {
  Matrix<T> normed, memory_normed;        ///< pre-norm: what the projections read
  Matrix<T> projected, memory_projected;  ///< queries (keys, values) as attention sees them
  Matrix<T> context;                      ///< what the output projection reads
  Matrix<T> saved;                        ///< of attention, for its way back
  Matrix<T> sum;                          ///< s: the residual after attention
  Matrix<T> middle;                       ///< u: what the feed-forward reads
  Matrix<T> wide;                         ///< before the activation; GAU: after it
  Matrix<T> active;                       ///< what the second product of the feed-forward reads
  Matrix<T> last_sum;                     ///< t: the residual after the feed-forward
  Matrix<T> gate, memory_gate;            ///< GAU: before the activation
  Matrix<T> keys, queries;                ///< GAU: scaled
  /// XLNet, DeBERTa: projected rows of distances, which queries meet; and those that keys meet.
  Matrix<T> distance_keys, distance_queries;
  Matrix<T> convolved, convolution_sum;      ///< DeBERTa: before the activation, before the norm
  std::vector<nn::GeneralSaved<T>> general;  ///< one a sequence
};

/// Rows that go through the layers together.
template <class T>
struct StreamTape {
  std::vector<Index> begins;  ///< rows of each sequence, and the end
  std::vector<Index> rows;    ///< of the chunk; empty: all of them
  std::vector<Index> positions;
  std::vector<Index> segments;
  bool query_masks = false;  ///< its masks are ExampleChunk::query_masks
  std::vector<TokenId> ids;  ///< what was embedded

  std::vector<Matrix<T>> x;  ///< before each layer, and after the last
  std::vector<LayerTape<T>> layers;
  Matrix<T> embedded, normed;  ///< in front of the embedding norm, and after it
  std::map<std::size_t, std::vector<std::shared_ptr<const mask::BlockMap>>>
      maps;                                               ///< by kind of layer
  std::map<Index, kernel::RotaryTable<T>> rotary_tables;  ///< by layer

  Index count() const { return begins.back(); }
  Index sequences() const { return static_cast<Index>(begins.size()) - 1; }
};

template <class T>
struct Tape {
  StreamTape<T> content, query;
  bool split = false;                ///< the query stream is used
  Matrix<T> last;                    ///< before the final norm
  Index first_distance = 0;          ///< XLNet: of row 0 of `distances`
  Matrix<T> distances, d_distances;  ///< what is projected: XLNet's sinusoids, DeBERTa's table
  /// Of an encoder that measures: sums over the attention matrices of the pass, forward; and what
  /// the loss changes with the measures of one of them, which the way back is given.
  std::array<Wide<T>, kDiversities> diversity{};
  Diversities diversity_slopes{};
  /// Forward: states of other networks, one for each of ExampleChunk::given; back: the gradients by
  /// them.
  Matrix<T> given, d_given;
  bool wants_given = true;  ///< whether these gradients are made
  // Gradients, on the way back.
  Matrix<T> d_content, d_query, d_state;
  std::vector<Matrix<T>> scratch;
};

}  // namespace masque::train
