// Keys and values of tokens that a model has read, for sequences that are continued.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/forward/stream.hpp"
#include "model/model.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// The KeyValueCache of a Transformer<T>: (tokens, width) of each layer and sequence. Where
/// select() names a sequence twice, and forgets one that once was the same, only the rows since the
/// two parted are copied: the beams of a search never copy their prompt again.
template <class T>
class KeyValues final : public KeyValueCache {
 public:
  KeyValues(Index layers, Index sequences);

  Index sequences() const override { return std::ssize(all_); }
  Index length(Index sequence) const override { return std::ssize(one(sequence).positions); }
  void select(std::span<const Index> from) override;
  void cut(Index sequence, Index length) override;
  void set_longest(Index sequence, Index tokens) override { one(sequence).longest = tokens; }

  /// One more than the largest position, of padding that has none (−1) not counted; 0 of a sequence
  /// without tokens.
  Index next_position(Index sequence) const;
  /// Tokens of a sequence for which there is memory, of the layer that has most.
  Index room(Index sequence) const;
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
    Index longest = 0;  ///< tokens that it may have in the end; 0: unknown
    std::vector<Index> segments;
    std::vector<std::uint64_t> numbers;  ///< of the tokens: equal where sequences were the same
  };

  const Sequence& one(Index sequence) const { return all_[static_cast<std::size_t>(sequence)]; }
  Sequence& one(Index sequence) { return all_[static_cast<std::size_t>(sequence)]; }
  Layer& layer(Index layer, Index sequence) {
    return one(sequence).layers[static_cast<std::size_t>(layer)];
  }

  /// A copy in the memory of the spare sequence that shares most rows, which it takes, or in memory
  /// of its own if none shares any.
  Sequence copy_of(const Sequence& source, std::vector<Sequence>& spare) const;

  std::vector<Sequence> all_;
  std::uint64_t next_number_ = 0;
};

/// The rows of `added` among all rows of their sequences, as rows that are selected from them.
StreamRows last_rows(const StreamRows& whole, const StreamRows& added);

}  // namespace masque::model
