#include "mask/block_map.hpp"

#include <algorithm>
#include <bit>

namespace masque {

namespace {

constexpr Index kBlock = BlockMap::kBlock;

/// The cells of one block; kEmpty and kFull if they all agree.
Cover read_tile(const Mask& mask, Range q, Range k, Tile& tile) {
  const int n = static_cast<int>(k.size());
  const std::uint64_t all = low_bits(n);
  std::uint64_t any = 0;
  std::uint64_t every = all;
  for (Index row = q.begin; row < q.end; ++row) {
    const std::uint64_t bits = mask.bits(row, k.begin, n);
    tile[static_cast<std::size_t>(row - q.begin)] = bits;
    any |= bits;
    every &= bits;
  }
  std::fill(tile.begin() + q.size(), tile.end(), 0);
  return any == 0 ? Cover::kEmpty : every == all ? Cover::kFull : Cover::kPartial;
}

class Walker {
 public:
  Walker(const Mask& mask, const TileVisitor& visit) : mask_(mask), visit_(visit) {}

  // Squares are halved in blocks, not in cells, so that every rectangle begins on a block.
  void walk(Range q, Range k) {
    if (q.size() <= 0 || k.size() <= 0) return;
    const Cover cover = mask_.cover(q, k);
    if (cover == Cover::kEmpty) return;
    if (cover == Cover::kFull) return visit_(q, k, nullptr);
    if (q.size() <= kBlock && k.size() <= kBlock) {
      const Cover exact = read_tile(mask_, q, k, tile_);
      if (exact != Cover::kEmpty) visit_(q, k, exact == Cover::kFull ? nullptr : &tile_);
      return;
    }
    const Index middle_q = q.size() > kBlock ? middle(q) : q.end;
    const Index middle_k = k.size() > kBlock ? middle(k) : k.end;
    walk({q.begin, middle_q}, {k.begin, middle_k});
    walk({q.begin, middle_q}, {middle_k, k.end});
    walk({middle_q, q.end}, {k.begin, middle_k});
    walk({middle_q, q.end}, {middle_k, k.end});
  }

 private:
  static Index middle(Range range) {
    const Index blocks = (range.size() + kBlock - 1) / kBlock;
    return range.begin +
           static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(blocks)) / 2) * kBlock;
  }

  const Mask& mask_;
  const TileVisitor& visit_;
  Tile tile_{};
};

}  // namespace

void visit_tiles(const Mask& mask, const TileVisitor& visit) {
  Walker(mask, visit).walk({0, mask.lengths().queries}, {0, mask.lengths().keys});
}

BlockMap::BlockMap(const Mask& mask) : lengths_(mask.lengths()) {
  struct Found {
    Index row;
    BlockEntry entry;
  };
  std::vector<Found> found;
  visit_tiles(mask, [&](Range q, Range k, const Tile* tile) {
    const auto index = static_cast<std::int32_t>(tiles_.size());
    if (tile != nullptr) tiles_.push_back(*tile);
    for (Index row = q.begin / kBlock; row * kBlock < q.end; ++row) {
      for (Index column = k.begin / kBlock; column * kBlock < k.end; ++column) {
        found.push_back({row, {static_cast<std::int32_t>(column), tile == nullptr ? -1 : index}});
      }
    }
  });
  // The walk goes by squares; lists go by rows: a counting sort by row, then by column.
  row_begin_.assign(static_cast<std::size_t>((lengths_.queries + kBlock - 1) / kBlock) + 1, 0);
  for (const Found& one : found) ++row_begin_[static_cast<std::size_t>(one.row) + 1];
  for (std::size_t i = 1; i < row_begin_.size(); ++i) row_begin_[i] += row_begin_[i - 1];
  entries_.resize(found.size());
  std::vector<std::size_t> next(row_begin_.begin(), row_begin_.end() - 1);
  for (const Found& one : found) entries_[next[static_cast<std::size_t>(one.row)]++] = one.entry;
  for (std::size_t i = 0; i + 1 < row_begin_.size(); ++i) {
    std::sort(entries_.begin() + static_cast<std::ptrdiff_t>(row_begin_[i]),
              entries_.begin() + static_cast<std::ptrdiff_t>(row_begin_[i + 1]),
              [](const BlockEntry& a, const BlockEntry& b) { return a.block < b.block; });
  }
}

std::span<const BlockEntry> BlockMap::row(Index block) const {
  const auto at = static_cast<std::size_t>(block);
  return std::span(entries_).subspan(row_begin_[at], row_begin_[at + 1] - row_begin_[at]);
}

Index BlockMap::visible(Index i) const {
  Index count = 0;
  for (const BlockEntry& entry : row(i / kBlock)) {
    if (entry.tile < 0) {
      count += std::min(kBlock, lengths_.keys - entry.block * kBlock);
    } else {
      count += std::popcount(tile(entry)[static_cast<std::size_t>(i % kBlock)]);
    }
  }
  return count;
}

std::vector<std::vector<BlockEntry>> BlockMap::transposed() const {
  std::vector<std::vector<BlockEntry>> lists(static_cast<std::size_t>(key_blocks()));
  for (Index i = 0; i < query_blocks(); ++i) {
    for (const BlockEntry& entry : row(i)) {
      lists[static_cast<std::size_t>(entry.block)].push_back(
          {static_cast<std::int32_t>(i), entry.tile});
    }
  }
  return lists;
}

std::uint64_t BlockMap::bytes() const {
  return entries_.size() * sizeof(BlockEntry) + tiles_.size() * sizeof(Tile) +
         row_begin_.size() * sizeof(std::size_t);
}

}  // namespace masque
