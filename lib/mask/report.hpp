// What can be said about a mask in numbers, found without looking at every cell.
#pragma once

#include <vector>

#include "mask/mask.hpp"

namespace masque::mask {

/// Blocks of `size` × `size` cells (smaller at the ends).
struct BlockReport {
  Index size = 0;                ///< cells along a side
  std::uint64_t empty = 0;       ///< blocks without a visible pair
  std::uint64_t partial = 0;     ///< the other blocks
  std::uint64_t full = 0;        ///< blocks without a hidden pair
  std::uint64_t kept_cells = 0;  ///< cells of the blocks that are not empty
};

/// A mask in numbers.
struct MaskReport {
  Lengths lengths;                  ///< of the mask
  std::uint64_t visible_pairs = 0;  ///< Σ n_i
  std::uint64_t empty_rows = 0;     ///< queries that read nothing
  std::uint64_t unread_keys = 0;    ///< keys that nobody reads
  std::uint64_t self_visible = 0;   ///< queries that read the key of their own position
  bool symmetric = false;           ///< false for masks that are not square
  bool causal = true;               ///< no key after its query's position: j ≤ i
  bool strictly_causal = true;      ///< j < i
  Index farthest_back = 0;          ///< largest i − j of a visible pair; 0 if there is none
  Index farthest_ahead = 0;         ///< largest j − i
  Index n_min = 0;                  ///< least n_i: keys that query i reads
  double n_mean = 0;                ///< mean n_i
  Index n_max = 0;                  ///< greatest n_i
  BlockReport blocks;               ///< of the requested size
  /// Of the entries and tiles of a BlockMap, whose blocks have 64 × 64 cells, if no tiles were
  /// equal.
  std::uint64_t block_map_bytes = 0;

  /// Number of pairs, visible or not.
  std::uint64_t cells() const {
    return static_cast<std::uint64_t>(lengths.queries) * static_cast<std::uint64_t>(lengths.keys);
  }
  /// Visible pairs among all; 0 for a mask without cells.
  double density() const;
};

/// Looks at `mask`, also in blocks of `block` × `block` cells. Cost as visit_tiles, and O(queries +
/// keys) memory. Throws UsageError for a block size below 1, InputError for more than 2^28 queries
/// or keys.
MaskReport report_mask(const Mask& mask, Index block = 128);

/// n_i of every query of `mask`. Cost as visit_tiles.
std::vector<Index> visible_keys(const Mask& mask);

// A zoomed-out mask: how much of each square of cells is visible.

/// Visible pairs of squares of zoom × zoom cells (smaller at the ends).
class Overview {
 public:
  /// Looks at `mask` in squares of `zoom` × `zoom` cells, from 1. Throws UsageError if there would
  /// be more than kMaxCells squares. Cost as visit_tiles, memory 8 bytes a square.
  Overview(const Mask& mask, Index zoom);

  /// Most squares.
  static constexpr Index kMaxCells = Index{1} << 28;

  /// Squares from top to bottom.
  Index rows() const { return rows_; }
  /// Squares from left to right.
  Index columns() const { return columns_; }
  /// Cells along a side of a square.
  Index zoom() const { return zoom_; }
  /// Number of visible pairs in the square at (`row`, `column`).
  std::uint64_t visible(Index row, Index column) const {
    return visible_[static_cast<std::size_t>(row * columns_ + column)];
  }
  /// What the mask lets through in the square at (`row`, `column`): exact, however small the
  /// visible or hidden part is.
  Cover cover(Index row, Index column) const;

 private:
  Lengths lengths_;
  Index zoom_;
  Index rows_;
  Index columns_;
  std::vector<std::uint64_t> visible_;
};

}  // namespace masque::mask
