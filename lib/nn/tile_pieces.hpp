// Which keys the rows of a tile see: blocks cut to whole groups, and runs of adjacent ones.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "mask/block_map.hpp"
#include "nn/tile.hpp"

namespace masque::nn {

/// The keys of a block that some query of a tile sees, in whole groups.
struct TilePiece {
  const mask::BlockEntry* entry = nullptr;  ///< the block; borrowed from the entries
  mask::Range keys;                         ///< positions, in whole groups
  Index column = 0;                         ///< in the scores of the tile
  bool hidden = false;  ///< some key is not visible to some query, or is after the last one
};

/// Adjacent pieces.
struct TileRun {
  mask::Range keys;  ///< positions
  Index column = 0;  ///< of its first key, in the scores of the tile
};

/// What a tile of queries sees.
struct TilePieces {
  std::vector<TilePiece> pieces;  ///< in the order of keys
  std::vector<TileRun> runs;      ///< of the pieces
};

/// Sets `out` to all key blocks of row `query_block` of `blocks`; if that is nullptr, to
/// all blocks of `keys` keys.
inline void list_entries(const mask::BlockMap* blocks, Index query_block, Index keys,
                         std::vector<mask::BlockEntry>& out) {
  out.clear();
  if (blocks != nullptr) {
    const auto entries = blocks->row(query_block);
    out.assign(entries.begin(), entries.end());
    return;
  }
  for (Index k = 0; k < keys; k += mask::BlockMap::kBlock) {
    out.push_back({static_cast<std::int32_t>(k / mask::BlockMap::kBlock), -1});
  }
}

/// The keys of block `e` that query `r` sees, one a bit; r counts from the first query of its
/// block. `blocks` may be nullptr if e is full; `keys` is the number of all keys.
inline std::uint64_t visible_word(const mask::BlockMap* blocks, Index keys,
                                  const mask::BlockEntry& e, Index r) {
  return e.tile < 0 ? mask::low_bits(keys - e.block * mask::BlockMap::kBlock)
                    : blocks->tile(e)[static_cast<std::size_t>(r)];
}

/// Finds what `rows` (counted from the first query of their block) of `blocks` see in `entries`,
/// one after the other, and writes it to `out`, which borrows the entries; `keys` is the number of
/// all keys. Returns the width of their scores. T: the number, which sets the groups.
template <class T>
Index find_pieces(const mask::BlockMap* blocks, Index keys,
                  std::span<const mask::BlockEntry> entries, mask::Range rows, TilePieces& out) {
  out.pieces.clear();
  out.runs.clear();
  Index width = 0;
  for (const mask::BlockEntry& e : entries) {
    std::uint64_t any = e.tile < 0 ? visible_word(blocks, keys, e, 0) : 0;
    std::uint64_t all = e.tile < 0 ? any : ~std::uint64_t{0};
    for (Index r = rows.begin; r < rows.end && e.tile >= 0; ++r) {
      any |= visible_word(blocks, keys, e, r);
      all &= visible_word(blocks, keys, e, r);
    }
    if (any == 0) continue;
    const Index begin = std::countr_zero(any) / tile::kLanes<T> * tile::kLanes<T>;
    const Index end = tile::round_up(64 - std::countl_zero(any), tile::kLanes<T>);
    const std::uint64_t cells = mask::low_bits(end) & ~mask::low_bits(begin);
    const Index first = e.block * mask::BlockMap::kBlock;
    const mask::Range seen{first + begin, first + end};
    out.pieces.push_back({&e, seen, width, (all & cells) != cells});
    if (!out.runs.empty() && out.runs.back().keys.end == seen.begin) {
      out.runs.back().keys.end = seen.end;
    } else {
      out.runs.push_back({seen, width});
    }
    width += seen.size();
  }
  return width;
}

/// Elements of the pieces of `tile` in `scores` that their row does not see become −∞. Row 0 of
/// `scores` is rows.begin of `rows`; `blocks` and `keys` are those of find_pieces().
template <class T>
void hide_pieces(const mask::BlockMap* blocks, Index keys, mask::Range rows, const TilePieces& tile,
                 MatrixView<T> scores) {
  for (const TilePiece& piece : tile.pieces) {
    if (!piece.hidden) continue;
    const Index shift = piece.keys.begin % mask::BlockMap::kBlock;
    for (Index r = rows.begin; r < rows.end; ++r) {
      tile::hide(scores.row(r - rows.begin) + piece.column, piece.keys.size(),
                 visible_word(blocks, keys, *piece.entry, r) >> shift);
    }
  }
}

}  // namespace masque::nn
