// What the forward and the backward pass of differentiable attention share: the operands of a head,
// and a few queries of it with the keys that they see.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/differentiable_attention.hpp"
#include "nn/tile_pairs.hpp"
#include "nn/tile_pieces.hpp"
#include "nn/tile_walk.hpp"

namespace masque::nn::differentiable {

/// Elements from row to row of a matrix of `columns` columns, a group of 64 bytes more than a
/// multiple of two groups: with a power of two all rows would share few lines of the cache.
template <class T>
Index padded_stride(Index columns) {
  return tile::round_up(columns, 2 * tile::kLanes<T>) + tile::kLanes<T>;
}

/// What the products of `problem` take on this processor.
template <class T>
Operands operands_of(const AttentionProblem<T>& problem) {
  if (!problem.bf16) return Operands::kPlain;
  return std::is_same_v<T, float> && tile::has_pairs() ? Operands::kPairs : Operands::kRounded;
}

/// A packed matrix and its memory.
template <class T>
class PackedMatrix {
 public:
  /// Packs `x` (depth, columns) as it is, as `operands`: what weights and gradients of
  /// scores are multiplied with.
  void pack(MatrixView<const T> x, Operands operands);
  /// Packs the transpose of `x` (columns, depth), as `operands`: what queries are multiplied with.
  void pack_transposed(MatrixView<const T> x, Operands operands);
  /// The whole matrix; valid until it is packed again.
  tile::Strips<const T> whole() const { return {memory_.data(), memory_.columns()}; }
  /// The same from row `depth` of the inner index on, an even one.
  tile::Strips<const T> from_depth(Index depth) const {
    return whole().from_depth(operands_ == Operands::kPairs ? depth / 2 : depth);
  }
  /// The same from `column` on, a multiple of kLanes.
  tile::Strips<const T> from_column(Index column) const { return whole().from_column(column); }
  Operands operands() const { return operands_; }  ///< what it was packed as

 private:
  tile::Strips<T> shape(Index columns, Index depth);
  Operands operands_ = Operands::kPlain;
  Matrix<T> memory_;
};

/// A matrix with room at the end of its rows, whose memory is kept between uses.
template <class T>
struct PaddedMatrix {
  Matrix<T> memory;  ///< (rows, padded_stride(columns))
  /// A view of `rows` × `columns` elements, not initialised; valid until the next call.
  MatrixView<T> shape(Index rows, Index columns) {
    memory.resize(rows, padded_stride<T>(columns));
    return {memory.data(), rows, columns, memory.columns()};
  }
  /// A view of `rows` × `columns` zeros; valid until the next call.
  MatrixView<T> zeros(Index rows, Index columns) {
    const MatrixView<T> view = shape(rows, columns);
    std::fill(memory.span().begin(), memory.span().end(), T{});
    return view;
  }
};

/// Columns of one head, at unit length and rounded where the problem wants it.
template <class T>
class TileOperand {
 public:
  /// Takes the columns `x` (rows, head size) of a head, which must outlive the use: with `unit`
  /// brought to length 1 row by row, rounded where `operands` is kRounded.
  void take(MatrixView<const T> x, bool unit, Operands operands);
  MatrixView<const T> plain() const { return plain_; }      ///< as position terms see it
  MatrixView<const T> product() const { return product_; }  ///< as products take it

 private:
  Matrix<T> unit_, rounded_;
  MatrixView<const T> plain_, product_;
};

/// What multiplies q·k in `problem`: its scale, or 1 if the normalizer does not scale; 0 stays 0.
template <class T>
double product_scale(const AttentionProblem<T>& problem) {
  // With a scale of 0 the position terms are the whole score.
  return problem.normalizer->scaled() || problem.scale == 0 ? problem.scale : 1;
}

/// One head: its queries and the keys packed for them.
template <class T>
struct HeadOperands {
  const AttentionProblem<T>* problem = nullptr;  ///< the sequence
  const TileOperand<T>* query = nullptr;         ///< queries of the head
  /// Keys of its key head, packed by pack_transposed.
  const PackedMatrix<T>* key_transposed = nullptr;
  const HeadBias<T>* bias = nullptr;                ///< position terms of the head; nullptr: none
  const mask::BlockMap* blocks = nullptr;           ///< of the head; nullptr: everything is visible
  Index keys() const { return problem->key.rows; }  ///< number of keys
};

/// Where the scores of a key stand.
enum class Placement {
  kClose,  ///< what is visible, one after the other
  kByKey,  ///< key j in column j
};

/// Up to 64 queries of a head that begin at a multiple of 64.
template <class T>
class QueryBlock {
 public:
  /// Begins query block `block` of `head`: scales its queries, finds temperatures and key blocks.
  void begin(const HeadOperands<T>& head, Index block);
  /// Positions of its queries.
  mask::Range rows() const { return {first_, first_ + std::ssize(visible_)}; }
  Index count() const { return std::ssize(visible_); }  ///< number of its queries
  Index first() const { return first_; }                ///< position of its first query
  /// Key blocks that some query sees.
  const std::vector<mask::BlockEntry>& entries() const { return entries_; }

  /// Finds the keys that `rows` (counted from the first query of the block) see in `entries`, a
  /// part of entries(), and places them as `placement` says; returns how many columns they take.
  Index find(mask::Range rows, std::span<const mask::BlockEntry> entries, Placement placement);
  const std::vector<TileRun>& runs() const { return tile_.runs; }  ///< keys that find() found
  /// Fills the columns of `scores` that find() assigned with the scores of `rows` of `head`, times
  /// the temperature; −∞ where hidden. Row 0 of `scores` is rows.begin.
  void make_scores(const HeadOperands<T>& head, mask::Range rows, MatrixView<T> scores) const;

  /// The queries as left operand: row r times factor r; pairs are not scaled.
  MatrixView<const T> query() const { return query_view_; }
  /// What multiplies the queries before or after the product, one number a row.
  std::span<const T> factors() const { return factors_; }
  /// The number of keys that row `r` sees.
  Index visible(Index r) const { return visible_[static_cast<std::size_t>(r)]; }
  /// The factor of the scores of row `r` after the product: 1 if the queries already have it.
  T temperature(Index r) const { return temperatures_[static_cast<std::size_t>(r)]; }

 private:
  const mask::BlockMap* blocks_ = nullptr;
  Index keys_ = 0;
  Index first_ = 0;
  PaddedMatrix<T> query_;
  MatrixView<T> query_view_;
  std::vector<T> factors_, temperatures_;
  std::vector<Index> visible_;
  std::vector<mask::BlockEntry> entries_;
  TilePieces tile_;
};

/// Number of blocks of 64 of `queries` queries.
inline Index blocks_of(Index queries) {
  return (queries + mask::BlockMap::kBlock - 1) / mask::BlockMap::kBlock;
}

/// Multiplies what is in the columns of `runs` in `x` with its dropout factors of `attention`. Row
/// 0 of x is query `first` of `head`.
template <class T>
void drop(const DifferentiableAttention<T>& attention, Index head, Index first,
          std::span<const TileRun> runs, MatrixView<T> x);

/// Which keys a pass takes, by DifferentiableBackward::own_keys.
enum class Keys { kOwn, kEarlier };
/// `to` ← `x`, with 0 where a key of `runs` is not one of `keys`. `own_keys` has the
/// first own key of each row.
template <class T>
void copy_part(Keys keys, std::span<const Index> own_keys, MatrixView<const T> x,
               std::span<const TileRun> runs, MatrixView<T> to);

/// The rows of `x` as the left operand of a product that takes `operands`: pairs in `memory`, else
/// x itself, which is rounded already where operands is kRounded.
template <class T>
MatrixView<const T> left_operand(MatrixView<const T> x, Operands operands, PaddedMatrix<T>& memory);
/// Turns the rows of `x` into the left operand of a product that takes `operands`, in place: pairs,
/// rounded numbers, or nothing to do.
template <class T>
void to_left_operand(MatrixView<T> x, Operands operands);
/// `out` = `rows`, a left operand, times the columns of `b` from `column` on; pairs
/// times `factors` of their row.
template <class T>
void multiply_rows(MatrixView<const T> rows, const PackedMatrix<T>& b, Index column,
                   std::span<const T> factors, MatrixView<T> out);
/// `sums` += (columns of `run` in the left operand `x`) · (rows of `b` of its keys);
/// `keys` is keys_of(run, …).
template <class T>
void add_product(MatrixView<const T> x, const TileRun& run, Index keys, const PackedMatrix<T>& b,
                 MatrixView<T> sums);

/// The number of keys of `run` that exist, of `keys` in all: a run ends at a whole group.
inline Index keys_of(const TileRun& run, Index keys) {
  return std::min(run.keys.end, keys) - run.keys.begin;
}

/// Runs the forward pass of key head `group` of `sequence` and of the query heads that read
/// it, on the calling thread.
template <class T>
void forward_key_head(const DifferentiableForward<T>& sequence, Index group);
/// Runs the backward pass of key head `group` of `sequence` and of the query heads that read
/// it, on the calling thread.
template <class T>
void backward_key_head(const DifferentiableBackward<T>& sequence, Index group);

}  // namespace masque::nn::differentiable
