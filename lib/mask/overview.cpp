#include "mask/overview.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/error.hpp"
#include "mask/block_map.hpp"

namespace masque::mask {

namespace {

/// The part of a range that lies in square `at`.
Range in_square(Range range, Index at, Index zoom) {
  return {std::max(range.begin, at * zoom), std::min(range.end, (at + 1) * zoom)};
}

}  // namespace

Overview::Overview(const Mask& mask, Index zoom)
    : lengths_(mask.lengths()),
      zoom_(zoom),
      rows_((lengths_.queries + zoom - 1) / zoom),
      columns_((lengths_.keys + zoom - 1) / zoom) {
  if (columns_ > 0 && rows_ > kMaxCells / columns_) {
    throw UsageError(
        fmt::format("a picture of {} × {} cells, expected at most {}", rows_, columns_, kMaxCells));
  }
  visible_.assign(static_cast<std::size_t>(rows_ * columns_), 0);
  visit_tiles(mask, [&](Range q, Range k, const Tile* tile) {
    for (Index row = q.begin / zoom; row * zoom < q.end; ++row) {
      const Range queries = in_square(q, row, zoom);
      for (Index column = k.begin / zoom; column * zoom < k.end; ++column) {
        const Range keys = in_square(k, column, zoom);
        std::uint64_t& sum = visible_[static_cast<std::size_t>(row * columns_ + column)];
        if (tile == nullptr) {
          sum += static_cast<std::uint64_t>(queries.size() * keys.size());
          continue;
        }
        const std::uint64_t wanted = low_bits(keys.size()) << (keys.begin - k.begin);
        for (Index i = queries.begin; i < queries.end; ++i) {
          const std::uint64_t word = (*tile)[static_cast<std::size_t>(i - q.begin)];
          sum += static_cast<std::uint64_t>(std::popcount(word & wanted));
        }
      }
    }
  });
}

Cover Overview::cover(Index row, Index column) const {
  const std::uint64_t found = visible(row, column);
  if (found == 0) return Cover::kEmpty;
  const Range q = in_square({0, lengths_.queries}, row, zoom_);
  const Range k = in_square({0, lengths_.keys}, column, zoom_);
  return found == static_cast<std::uint64_t>(q.size() * k.size()) ? Cover::kFull : Cover::kPartial;
}

}  // namespace masque::mask
