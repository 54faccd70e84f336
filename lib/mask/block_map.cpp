#include "mask/block_map.hpp"

#include <algorithm>
#include <bit>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/vectorize.hpp"
#include "base/thread/interrupt.hpp"

namespace masque::mask {

namespace {

constexpr Index kBlock = BlockMap::kBlock;

struct Summary {
  std::uint64_t any = 0;
  std::uint64_t every = 0;
};

inline Summary summary_of(const std::uint64_t* words, std::size_t n) {
  std::uint64_t any = 0;
  std::uint64_t every = ~std::uint64_t{0};
  for (std::size_t i = 0; i < n; ++i) {
    any |= words[i];
    every &= words[i];
  }
  return {any, every};
}

/// The cells of one block; kEmpty and kFull if they all agree.
Cover read_tile(const Mask& mask, Range q, Range k, Tile& tile) {
  const std::uint64_t all = low_bits(k.size());
  mask.tile(q, k, tile);
  std::fill(tile.begin() + q.size(), tile.end(), 0);
  const Summary summary = vectorized<summary_of>(tile.data(), static_cast<std::size_t>(q.size()));
  if (summary.any == 0) return Cover::kEmpty;
  return (summary.every & all) == all ? Cover::kFull : Cover::kPartial;
}

class Walker {
 public:
  Walker(const Mask& mask, const TileVisitor& visit) : mask_(mask), visit_(visit) {}

  // Squares are halved in blocks, not in cells, so that every rectangle begins on a block.
  void walk(Range q, Range k) {
    if (q.size() <= 0 || k.size() <= 0) return;
    throw_if_interrupted();
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
    const Index blocks = divide_up(range.size(), kBlock);
    return range.begin +
           static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(blocks)) / 2) * kBlock;
  }

  const Mask& mask_;
  const TileVisitor& visit_;
  Tile tile_{};
};

/// Keeps equal tiles once, as far as a small table remembers: most masks repeat a few of them.
class TilePool {
 public:
  explicit TilePool(std::vector<Tile>& tiles) : tiles_(tiles) { known_.fill(-1); }

  std::int32_t index_of(const Tile& tile) {
    // A few words tell most tiles apart; the comparison decides.
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < tile.size(); i += 9) {
      hash = (hash ^ tile[i]) * 0x9E3779B97F4A7C15;
      hash ^= hash >> 32;
    }
    std::int32_t& known = known_[hash % known_.size()];
    if (known < 0 || tiles_[static_cast<std::size_t>(known)] != tile) {
      known = static_cast<std::int32_t>(tiles_.size());
      tiles_.push_back(tile);
    }
    return known;
  }

 private:
  std::vector<Tile>& tiles_;
  std::array<std::int32_t, 1024> known_{};
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
  TilePool pool(tiles_);
  visit_tiles(mask, [&](Range q, Range k, const Tile* tile) {
    const std::int32_t index = tile == nullptr ? -1 : pool.index_of(*tile);
    partial_blocks_ += tile != nullptr;
    for (Index row = q.begin / kBlock; row * kBlock < q.end; ++row) {
      for (Index column = k.begin / kBlock; column * kBlock < k.end; ++column) {
        found.push_back({row, {static_cast<std::int32_t>(column), index}});
      }
    }
  });
  // The walk goes by squares; lists go by rows: a counting sort by row, then by column.
  row_begin_.assign(static_cast<std::size_t>(divide_up(lengths_.queries, kBlock)) + 1, 0);
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

BlockMap::BlockMap(const Mask& any, std::vector<BlockMap> heads) : BlockMap(any) {
  for (const BlockMap& head : heads)
    MASQUE_CHECK(head.lengths() == lengths_ && head.heads_.empty());
  heads_ = std::move(heads);
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

std::uint64_t BlockMap::bytes() const {
  std::uint64_t own = entries_.size() * sizeof(BlockEntry) + tiles_.size() * sizeof(Tile) +
                      row_begin_.size() * sizeof(std::size_t);
  for (const BlockMap& head : heads_) own += head.bytes();
  return own;
}

}  // namespace masque::mask
