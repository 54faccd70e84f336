// The mask of one query as words of bits.
#pragma once

#include <span>
#include <vector>

#include "mask/block_map.hpp"

namespace masque::nn {

/// The keys that a query may read, 64 a word: key j is bit j mod 64 of word j / 64. Kept between
/// rows: one per thread.
class RowMask {
 public:
  /// For masks of `keys` keys. `blocks` is borrowed; nullptr: all keys are
  /// visible. read() comes first.
  RowMask(const mask::BlockMap* blocks, Index keys);

  /// Goes to the row of `query`. Cost O(words).
  void read(Index query);
  /// Whether `key` may be read.
  bool visible(Index key) const {
    return (words_[static_cast<std::size_t>(key / 64)] >> (key % 64) & 1) != 0;
  }
  /// Hides all visible keys but `keys`.
  void keep(std::span<const Index> keys);
  /// The whole row; bits after the last key are 0.
  std::span<const std::uint64_t> words() const { return words_; }
  /// n_i: the number of visible keys.
  Index count() const { return count_; }

 private:
  const mask::BlockMap* blocks_;
  Index keys_;
  std::vector<std::uint64_t> words_;
  Index count_ = 0;
};

}  // namespace masque::nn
