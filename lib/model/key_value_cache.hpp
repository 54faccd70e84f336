// Keys and values of tokens that a model has read, for sequences that are continued.
#pragma once

#include <span>
#include <vector>

#include "model/forward/stream.hpp"
#include "model/model.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// The KeyValueCache of a Transformer<T>: (tokens, width) of each layer and sequence.
template <class T>
class KeyValues final : public KeyValueCache {
 public:
  KeyValues(Index layers, Index sequences);

  Index sequences() const override { return std::ssize(all_); }
  Index length(Index sequence) const override { return std::ssize(one(sequence).positions); }
  void select(std::span<const Index> from) override;

  /// One more than the largest position, of padding that has none (−1) not counted; 0 of a sequence
  /// without tokens.
  Index next_position(Index sequence) const;
  /// Makes room for the tokens of a batch, whose sequences are those of the cache. Positions are
  /// given, segments perhaps not.
  void extend(const Batch& batch);
  /// Where all tokens of the sequences of `added` stand, those of extend() included.
  StreamRows whole(Index first_sequence, const StreamRows& added) const;

  /// Puts keys and values of the last tokens of a sequence into a layer. Of different sequences
  /// from different threads.
  void put(Index layer, Index sequence, MatrixView<const T> keys, MatrixView<const T> values);
  MatrixView<T> keys(Index layer, Index sequence);
  MatrixView<T> values(Index layer, Index sequence);

 private:
  struct Layer {
    Matrix<T> keys, values;  ///< with room for more rows
  };
  struct Sequence {
    std::vector<Layer> layers;
    std::vector<Index> positions;
    Index next_position = 0;
    std::vector<Index> segments;
  };

  const Sequence& one(Index sequence) const { return all_[static_cast<std::size_t>(sequence)]; }
  Sequence& one(Index sequence) { return all_[static_cast<std::size_t>(sequence)]; }
  Layer& layer(Index layer, Index sequence) {
    return one(sequence).layers[static_cast<std::size_t>(layer)];
  }

  std::vector<Sequence> all_;
};

/// The rows of `added` among all rows of their sequences, as rows that are selected from them.
StreamRows last_rows(const StreamRows& whole, const StreamRows& added);

}  // namespace masque::model
