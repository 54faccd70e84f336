// The block-sparse form of a mask that kernels and reports walk: which blocks are empty, full or
// partial, and the bits of the partial ones.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/divide.hpp"
#include "mask/mask.hpp"

namespace masque::mask {

/// Called for rectangles that tile the mask where it lets something through, in the order of
/// squares that are halved: full ones (any size, tile is nullptr) and partial ones (at most 64 ×
/// 64, with their cells; rows after the rectangle's are 0). A tile is valid during the call.
using TileVisitor = std::function<void(Range q, Range k, const Tile* tile)>;

/// Calls `visit` for the visible part of `mask`. Empty and full rectangles are found by `cover` on
/// ever smaller squares, so the cost follows the border of the mask, not its area. Rectangles begin
/// at multiples of 64.
void visit_tiles(const Mask& mask, const TileVisitor& visit);

/// One block of a row of blocks.
struct BlockEntry {
  std::int32_t block = 0;  ///< the key block
  std::int32_t tile = -1;  ///< index of its tile; −1: full
};

/// A mask in blocks of 64 × 64: for each block row its non-empty key blocks in ascending order.
/// Memory 8 bytes a non-empty block and 512 a tile; equal tiles are mostly kept once.
class BlockMap {
 public:
  /// Rows and columns of a block.
  static constexpr Index kBlock = 64;

  /// The blocks of `mask`, which need not outlive them. Cost as visit_tiles.
  explicit BlockMap(const Mask& mask);

  /// The blocks of a mask for each head, of one size: `heads`, at least one. What does not ask for
  /// a head reads those of `any`, the mask of what any of them lets through.
  BlockMap(const Mask& any, std::vector<BlockMap> heads);

  /// Whether each head has a mask of its own.
  bool by_head() const { return !heads_.empty(); }
  /// The number of heads that have a mask of their own; 0: there is one mask for all.
  Index heads() const { return static_cast<Index>(heads_.size()); }
  /// The blocks of `head`: this, if there is one mask for all heads. Valid as long as the map.
  const BlockMap& of_head(Index head) const {
    return heads_.empty() ? *this : heads_[static_cast<std::size_t>(head)];
  }

  /// The lengths of the mask.
  Lengths lengths() const { return lengths_; }
  /// Number of block rows.
  Index query_blocks() const { return static_cast<Index>(row_begin_.size()) - 1; }
  /// Number of block columns.
  Index key_blocks() const { return divide_up(lengths_.keys, kBlock); }
  /// Non-empty key blocks of the block row `block`, ascending. Valid as long as the map.
  std::span<const BlockEntry> row(Index block) const;
  /// The cells of a partial block, from its `entry`; rows after the last query are 0.
  const Tile& tile(const BlockEntry& entry) const {
    return tiles_[static_cast<std::size_t>(entry.tile)];
  }
  /// Different tiles; at most as many as partial blocks.
  std::size_t tiles() const { return tiles_.size(); }
  /// Number of blocks that are neither empty nor full.
  std::size_t partial_blocks() const { return partial_blocks_; }
  /// Number of non-empty blocks.
  std::size_t entries() const { return entries_.size(); }
  /// n_i: the number of keys that query `i` may read. Cost O(blocks of its row).
  Index visible(Index i) const;
  /// Memory of the lists and tiles of all heads in bytes.
  std::uint64_t bytes() const;

 private:
  Lengths lengths_;
  std::vector<std::size_t> row_begin_;
  std::vector<BlockEntry> entries_;
  std::vector<Tile> tiles_;
  std::size_t partial_blocks_ = 0;
  std::vector<BlockMap> heads_;
};

/// The blocks of `head` in `blocks`; nullptr, where everything is visible, stays nullptr.
inline const BlockMap* blocks_of_head(const BlockMap* blocks, Index head) {
  return blocks == nullptr ? nullptr : &blocks->of_head(head);
}

}  // namespace masque::mask
