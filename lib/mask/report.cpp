#include "mask/report.hpp"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "mask/block_map.hpp"

namespace masque::mask {

namespace {

std::uint64_t area(Range q, Range k) {
  return static_cast<std::uint64_t>(q.size()) * static_cast<std::uint64_t>(k.size());
}

/// Sums over ranges of positions: whole ranges in two steps, single positions in one.
class RangeSums {
 public:
  explicit RangeSums(Index n) : sums_(static_cast<std::size_t>(n) + 1, 0) {}

  void add(Range range, Index value) {
    sums_[static_cast<std::size_t>(range.begin)] += value;
    sums_[static_cast<std::size_t>(range.end)] -= value;
  }
  void add(Index at, Index value) { add({at, at + 1}, value); }

  std::vector<Index> take() {
    Index sum = 0;
    for (Index& value : sums_) value = sum += value;
    sums_.pop_back();
    return std::move(sums_);
  }

 private:
  std::vector<Index> sums_;
};

/// Whether everything in a rectangle is visible, as far as that has to be looked at.
bool all_visible(const Mask& mask, Range q, Range k) {
  if (q.size() <= 0 || k.size() <= 0) return true;
  const Cover cover = mask.cover(q, k);
  if (cover != Cover::kPartial) return cover == Cover::kFull;
  if (q.size() <= 64 && k.size() <= 64) {
    for (Index row = q.begin; row < q.end; ++row) {
      const int n = static_cast<int>(k.size());
      if (mask.bits(row, k.begin, n) != low_bits(n)) return false;
    }
    return true;
  }
  const Index middle_q = q.size() > 64 ? q.begin + q.size() / 2 : q.end;
  const Index middle_k = k.size() > 64 ? k.begin + k.size() / 2 : k.end;
  return all_visible(mask, {q.begin, middle_q}, {k.begin, middle_k}) &&
         all_visible(mask, {q.begin, middle_q}, {middle_k, k.end}) &&
         all_visible(mask, {middle_q, q.end}, {k.begin, middle_k}) &&
         all_visible(mask, {middle_q, q.end}, {middle_k, k.end});
}

/// Whether the transposed cells of a visible part are visible too.
bool transposed_visible(const Mask& mask, Range q, Range k, const Tile* tile) {
  if (tile == nullptr) return all_visible(mask, k, q);
  for (Index key = k.begin; key < k.end; ++key) {
    std::uint64_t wanted = 0;
    for (Index row = q.begin; row < q.end; ++row) {
      const std::uint64_t word = (*tile)[static_cast<std::size_t>(row - q.begin)];
      wanted |= (word >> (key - k.begin) & 1) << (row - q.begin);
    }
    if ((wanted & ~mask.bits(key, q.begin, static_cast<int>(q.size()))) != 0) return false;
  }
  return true;
}

class Reporter {
 public:
  explicit Reporter(const Mask& mask)
      : mask_(mask), rows_(mask.lengths().queries), columns_(mask.lengths().keys) {
    report_.lengths = mask.lengths();
    report_.symmetric = mask.lengths().queries == mask.lengths().keys;
    visit_tiles(mask, [this](Range q, Range k, const Tile* tile) { add(q, k, tile); });
  }

  MaskReport take() {
    const std::vector<Index> visible = rows_.take();
    const std::vector<Index> readers = columns_.take();
    report_.empty_rows = zeros(visible);
    report_.unread_keys = zeros(readers);
    if (!visible.empty()) {
      report_.n_min = *std::min_element(visible.begin(), visible.end());
      report_.n_max = *std::max_element(visible.begin(), visible.end());
      report_.n_mean =
          static_cast<double>(report_.visible_pairs) / static_cast<double>(visible.size());
    }
    const Index both = std::min(mask_.lengths().queries, mask_.lengths().keys);
    for (Index i = 0; i < both; ++i) report_.self_visible += mask_.allows(i, i);
    return report_;
  }

 private:
  static std::uint64_t zeros(const std::vector<Index>& values) {
    return static_cast<std::uint64_t>(std::count(values.begin(), values.end(), 0));
  }

  void add(Range q, Range k, const Tile* tile) {
    if (report_.symmetric) report_.symmetric = transposed_visible(mask_, q, k, tile);
    if (tile == nullptr) {
      rows_.add(q, k.size());
      columns_.add(k, q.size());
      report_.visible_pairs += area(q, k);
      see(q.end - 1 - k.begin);
      see(q.begin - (k.end - 1));
      report_.block_map_bytes += sizeof(BlockEntry) * area(in_blocks(q), in_blocks(k));
      return;
    }
    for (Index row = q.begin; row < q.end; ++row) {
      std::uint64_t word = (*tile)[static_cast<std::size_t>(row - q.begin)];
      if (word == 0) continue;
      const Index count = std::popcount(word);
      rows_.add(row, count);
      report_.visible_pairs += static_cast<std::uint64_t>(count);
      see(row - (k.begin + std::countr_zero(word)));
      see(row - (k.begin + 63 - std::countl_zero(word)));
      for (; word != 0; word &= word - 1) columns_.add(k.begin + std::countr_zero(word), 1);
    }
    report_.block_map_bytes += sizeof(BlockEntry) + sizeof(Tile);
  }

  static Range in_blocks(Range range) {
    return {range.begin / BlockMap::kBlock, divide_up(range.end, BlockMap::kBlock)};
  }

  void see(Index back) {
    if (back < 0) report_.causal = false;
    if (back <= 0) report_.strictly_causal = false;
    report_.farthest_back = std::max(report_.farthest_back, back);
    report_.farthest_ahead = std::max(report_.farthest_ahead, -back);
  }

  const Mask& mask_;
  RangeSums rows_;
  RangeSums columns_;
  MaskReport report_;
};

/// Counts blocks of any size by halving ranges of them.
class BlockCounter {
 public:
  BlockCounter(const Mask& mask, Index size) : mask_(mask), report_{.size = size} {
    walk({0, blocks(mask.lengths().queries)}, {0, blocks(mask.lengths().keys)});
  }

  const BlockReport& report() const { return report_; }

 private:
  Index blocks(Index length) const { return divide_up(length, report_.size); }

  Range cells(Range range, Index length) const {
    return {range.begin * report_.size, std::min(length, range.end * report_.size)};
  }

  void walk(Range q, Range k) {
    if (q.size() <= 0 || k.size() <= 0) return;
    throw_if_interrupted();
    const Range rows = cells(q, mask_.lengths().queries);
    const Range columns = cells(k, mask_.lengths().keys);
    Cover cover = mask_.cover(rows, columns);
    const bool single = q.size() == 1 && k.size() == 1;
    // `cover` may not know; the bits of one block do.
    if (single && cover == Cover::kPartial) cover = mask_.node()->MaskNode::cover(rows, columns);
    if (cover == Cover::kEmpty) {
      report_.empty += area(q, k);
    } else if (cover == Cover::kFull) {
      report_.full += area(q, k);
      report_.kept_cells += area(rows, columns);
    } else if (single) {
      ++report_.partial;
      report_.kept_cells += area(rows, columns);
    } else {
      const Index middle_q = q.size() > 1 ? q.begin + q.size() / 2 : q.end;
      const Index middle_k = k.size() > 1 ? k.begin + k.size() / 2 : k.end;
      walk({q.begin, middle_q}, {k.begin, middle_k});
      walk({q.begin, middle_q}, {middle_k, k.end});
      walk({middle_q, q.end}, {k.begin, middle_k});
      walk({middle_q, q.end}, {middle_k, k.end});
    }
  }

  const Mask& mask_;
  BlockReport report_;
};

}  // namespace

double MaskReport::density() const {
  return cells() == 0 ? 0 : static_cast<double>(visible_pairs) / static_cast<double>(cells());
}

MaskReport report_mask(const Mask& mask, Index block) {
  if (block < 1) throw UsageError("block size below 1, expected at least 1");
  constexpr Index kMost = Index{1} << 28;
  if (mask.lengths().queries > kMost || mask.lengths().keys > kMost) {
    throw InputError(fmt::format("{} queries and {} keys, expected at most {} each for a report",
                                 mask.lengths().queries, mask.lengths().keys, kMost));
  }
  MaskReport report = Reporter(mask).take();
  report.blocks = BlockCounter(mask, block).report();
  return report;
}

std::vector<Index> visible_keys(const Mask& mask) {
  RangeSums rows(mask.lengths().queries);
  visit_tiles(mask, [&](Range q, Range k, const Tile* tile) {
    if (tile == nullptr) return rows.add(q, k.size());
    for (Index row = q.begin; row < q.end; ++row) {
      rows.add(row, std::popcount((*tile)[static_cast<std::size_t>(row - q.begin)]));
    }
  });
  return rows.take();
}

namespace {

/// The part of a range that lies in square `at`.
Range in_square(Range range, Index at, Index zoom) {
  return {std::max(range.begin, at * zoom), std::min(range.end, (at + 1) * zoom)};
}

}  // namespace

Overview::Overview(const Mask& mask, Index zoom)
    : lengths_(mask.lengths()),
      zoom_(zoom),
      rows_(divide_up(lengths_.queries, zoom)),
      columns_(divide_up(lengths_.keys, zoom)) {
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
