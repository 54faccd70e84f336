// The merges of a BPE model: pairs of ids in one flat hash table.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.hpp"

namespace masque::text {

/// The ids `left` and `right` as one number, in the order of pairs.
inline std::uint64_t pair_key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

/// What a pair becomes.
struct Merge {
  /// The merge of the lowest rank comes first; the largest number: no merge.
  std::uint32_t rank = std::numeric_limits<std::uint32_t>::max();
  TokenId id = -1;  ///< of the joined token
};

/// A hash table from pairs of ids to what they become. Reading is thread-safe.
class PairTable {
 public:
  /// Room for `pairs` pairs, which must not be exceeded: the table does not grow.
  explicit PairTable(std::size_t pairs) : slots_(std::bit_ceil(pairs * 2 + 2)) {
    shift_ = 64 - std::countr_zero(slots_.size());
  }

  /// The pair of `left` and `right`, ids ≥ 0, becomes `merge`, whatever it became before.
  void set(TokenId left, TokenId right, Merge merge) {
    slot(pair_key(left, right)) = {pair_key(left, right), merge};
  }

  /// What the pair of `left` and `right` becomes; the rank is the largest number if there is no
  /// such merge.
  Merge find(TokenId left, TokenId right) const {
    const std::uint64_t wanted = pair_key(left, right);
    for (std::size_t at = place(wanted);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.key == wanted || slot.key == kFree) return slot.merge;
    }
  }

  /// Calls `visit`(merge) for all merges, in no order.
  template <typename F>
  void each(F visit) const {
    for (const Slot& slot : slots_) {
      if (slot.key != kFree) visit(slot.merge);
    }
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // ids are ≥ 0
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };

  // The high bits of a product with an odd number, over both halves.
  std::size_t place(std::uint64_t key) const {
    key ^= key >> 29;
    return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ULL) >> shift_);
  }
  Slot& slot(std::uint64_t wanted) {
    std::size_t at = place(wanted);
    while (slots_[at].key != wanted && slots_[at].key != kFree) at = (at + 1) & (slots_.size() - 1);
    return slots_[at];
  }

  std::vector<Slot> slots_;
  int shift_ = 0;
};

}  // namespace masque::text
