// Keys and values of tokens that a model has read, for sequences that are continued.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/forward/stream.hpp"
#include "model/model.hpp"
#include "tensor/matrix.hpp"

namespace masque::model {

/// The KeyValueCache of a `Transformer<T>`: (tokens, width) of each layer and sequence. Where
/// select() names a sequence twice, and forgets one that once was the same, only the rows since the
/// two parted are copied: the beams of a search never copy their prompt again.
template <class T>
class KeyValues final : public KeyValueCache {
 public:
  /// `sequences` sequences without tokens, of a model with `layers` layers.
  KeyValues(Index layers, Index sequences);

  Index sequences() const override { return std::ssize(all_); }
  Index length(Index sequence) const override { return std::ssize(one(sequence).positions); }
  void select(std::span<const Index> from) override;
  void cut(Index sequence, Index length) override;
  void set_longest(Index sequence, Index tokens) override { one(sequence).longest = tokens; }

  /// One more than the largest position of `sequence`, of padding that has none (−1) not counted; 0
  /// without tokens.
  Index next_position(Index sequence) const;
  /// Tokens of `sequence` for which there is memory, of the layer that has most.
  Index room(Index sequence) const;
  /// Appends the tokens of `batch`, whose sequences are those of the cache; put() adds their keys
  /// and values. Positions are given, segments perhaps not.
  void extend(const Batch& batch);
  /// Where all tokens of the sequences of `added` stand, those of extend() included; the first of
  /// these is sequence `first_sequence` of the cache.
  StreamRows whole(Index first_sequence, const StreamRows& added) const;

  /// Copies `keys` and `values` (rows, width) of the last tokens of `sequence` into layer `layer`.
  /// Threads may put different sequences at the same time.
  void put(Index layer, Index sequence, MatrixView<const T> keys, MatrixView<const T> values);
  /// Keys (tokens, width) of all tokens of `sequence` in layer `layer`; valid until put(), select()
  /// or the end of the cache.
  MatrixView<T> keys(Index layer, Index sequence);
  /// Values (tokens, width) in the same way, of `sequence` in layer `layer`.
  MatrixView<T> values(Index layer, Index sequence);

  /// Makes room for the keys and values of the source of `sequence` (SourceDesign), of all layers.
  void begin_source(Index sequence);
  /// Whether `sequence` has a source: begin_source() was called for what it continues.
  bool has_source(Index sequence) const { return one(sequence).source != nullptr; }
  /// Copies `keys` and `values` (tokens of the source, width) into layer `layer` of `sequence`,
  /// which shares them with what select() makes of it. Threads as of put().
  void put_source(Index layer, Index sequence, MatrixView<const T> keys,
                  MatrixView<const T> values);
  /// Keys of all tokens of the source of `sequence` in layer `layer`; valid as long as the cache.
  MatrixView<const T> source_keys(Index layer, Index sequence) const {
    return (*one(sequence).source)[static_cast<std::size_t>(layer)].keys.view();
  }
  /// Values in the same way, of `layer` of `sequence`.
  MatrixView<const T> source_values(Index layer, Index sequence) const {
    return (*one(sequence).source)[static_cast<std::size_t>(layer)].values.view();
  }

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
    /// Numbers of the tokens: equal where sequences were the same.
    std::vector<std::uint64_t> numbers;
    std::shared_ptr<std::vector<Layer>> source;  ///< nullptr: none
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

/// The rows of `added` among all rows of their sequences, `whole`, of which they are the last ones,
/// as rows that are selected from them.
StreamRows last_rows(const StreamRows& whole, const StreamRows& added);

}  // namespace masque::model
