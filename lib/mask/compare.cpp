#include "mask/compare.hpp"

#include <bit>

#include "base/error.hpp"
#include "mask/block_map.hpp"

namespace masque::mask {

namespace {

using FirstCell = std::optional<MaskDifference::Cell>;

/// Counts the pairs of a mask, and notes its first cell if it comes before the one known.
std::uint64_t count_pairs(const Mask& mask, FirstCell* first) {
  std::uint64_t pairs = 0;
  const auto see = [&](Index query, Index key) {
    if (first == nullptr) return;
    if (!*first || query < (*first)->query || (query == (*first)->query && key < (*first)->key)) {
      *first = MaskDifference::Cell{query, key};
    }
  };
  visit_tiles(mask, [&](Range q, Range k, const Tile* tile) {
    if (tile == nullptr) {
      pairs += static_cast<std::uint64_t>(q.size()) * static_cast<std::uint64_t>(k.size());
      return see(q.begin, k.begin);
    }
    for (Index row = q.begin; row < q.end; ++row) {
      const std::uint64_t word = (*tile)[static_cast<std::size_t>(row - q.begin)];
      if (word == 0) continue;
      pairs += static_cast<std::uint64_t>(std::popcount(word));
      see(row, k.begin + std::countr_zero(word));
    }
  });
  return pairs;
}

}  // namespace

MaskDifference compare_masks(const Mask& a, const Mask& b) {
  MASQUE_CHECK(a.lengths() == b.lengths());
  MaskDifference difference;
  difference.only_a = count_pairs(a & ~b, &difference.first);
  difference.only_b = count_pairs(b & ~a, &difference.first);
  difference.both = count_pairs(a & b, nullptr);
  return difference;
}

}  // namespace masque::mask
