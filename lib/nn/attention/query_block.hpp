// Attention of 64 queries of a head: the engine under every evaluation by tiles and under training.
// A query block finds the keys that its queries see, makes their scores, maps them to numerators,
// sums these, and multiplies them with the values, a tile of a few queries at a time.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "base/divide.hpp"
#include "mask/block_map.hpp"
#include "nn/attention/attention.hpp"
#include "nn/attention/tile.hpp"
#include "nn/attention/tile_pairs.hpp"

namespace masque::nn {

/// The numbers that products of attention take.
enum class OperandFormat {
  kPlain,    ///< numbers as they are
  kRounded,  ///< numbers rounded to bfloat16
  kPairs,    ///< pairs of bfloat16 (tile_pairs.hpp); T is float
};

/// What the products of `problem` take on this processor.
template <class T>
OperandFormat operands_of(const AttentionProblem<T>& problem) {
  if (!problem.bf16) return OperandFormat::kPlain;
  return std::is_same_v<T, float> && tile::has_pairs() ? OperandFormat::kPairs
                                                       : OperandFormat::kRounded;
}

/// A packed right operand and its memory, which is kept between uses.
template <class T>
class PackedMatrix {
 public:
  /// Packs `x` (depth, columns) as it is, as `operands`: what weights and gradients of
  /// scores are multiplied with. Numbers for kRounded are rounded already.
  void pack(MatrixView<const T> x, OperandFormat operands) {
    resize(x.columns, x.rows, operands);
    pack_rows(x, 0);
  }
  /// Packs the transpose of `x` (columns, depth), as `operands`: what queries are multiplied with.
  void pack_transposed(MatrixView<const T> x, OperandFormat operands) {
    resize(x.rows, x.columns, operands);
    pack_transposed_rows(x, 0);
  }
  /// Makes room for a matrix (depth, columns) as `operands`, for the two below.
  void resize(Index columns, Index depth, OperandFormat operands);
  /// Packs `x` into the rows from `first` on, an even one. Parts may be packed by several threads.
  void pack_rows(MatrixView<const T> x, Index first);
  /// Packs the transpose of `x` into the columns from `first` on, a multiple of kLanes. Parts may
  /// be packed by several threads.
  void pack_transposed_rows(MatrixView<const T> x, Index first);

  /// The whole matrix; valid until it is packed again.
  tile::Strips<const T> whole() const { return {memory_.data(), memory_.columns()}; }
  /// The same from row `depth` of the inner index on, an even one.
  tile::Strips<const T> from_depth(Index depth) const {
    return whole().from_depth(operands_ == OperandFormat::kPairs ? depth / 2 : depth);
  }
  /// The same from `column` on, a multiple of kLanes.
  tile::Strips<const T> from_column(Index column) const { return whole().from_column(column); }
  OperandFormat operands() const { return operands_; }  ///< what it was packed as

 private:
  OperandFormat operands_ = OperandFormat::kPlain;
  Matrix<T> memory_;
};

/// A matrix with room at the end of its rows, whose memory is kept between uses.
template <class T>
struct PaddedMatrix {
  Matrix<T> memory;  ///< (rows, more than columns)
  /// A view of `rows` × `columns` elements, not initialised; valid until the next call.
  MatrixView<T> shape(Index rows, Index columns) {
    // A group of 64 bytes more than a multiple of two: with a power of two all rows would share
    // few lines of the cache.
    memory.resize(rows, round_up(columns, 2 * tile::kLanes<T>) + tile::kLanes<T>);
    return {memory.data(), rows, columns, memory.columns()};
  }
  /// A view of `rows` × `columns` zeros; valid until the next call.
  MatrixView<T> zeros(Index rows, Index columns) {
    const MatrixView<T> view = shape(rows, columns);
    std::fill(memory.span().begin(), memory.span().end(), T{});
    return view;
  }
};

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
  Index column = 0;  ///< column of its first key, in the scores of the tile
};

/// The number of keys of `run` that exist, of `keys` in all: a run ends at a whole group.
inline Index keys_of(const TileRun& run, Index keys) {
  return std::min(run.keys.end, keys) - run.keys.begin;
}

/// One head of a sequence. Views and pointers are borrowed.
template <class T>
struct HeadOperands {
  const AttentionProblem<T>* problem = nullptr;  ///< the sequence: normalizer, scale, operands
  MatrixView<const T> query;                     ///< (T, head size), of length 1 where wanted
  const PackedMatrix<T>* key = nullptr;          ///< keys of its key head, transposed
  const HeadBias<T>* bias = nullptr;             ///< position terms of the head; nullptr: none
  /// Blocks of the head; nullptr: everything is visible.
  const mask::BlockMap* blocks = nullptr;
  std::optional<T> sink = {};                       ///< sink_of() the head
  Index keys() const { return problem->key.rows; }  ///< number of keys
};

/// Where the scores of a key stand.
enum class Placement {
  kClose,  ///< what is visible, one after the other
  kByKey,  ///< key j in column j
};

/// Up to 64 queries of a head that begin at a multiple of 64: their operands, the keys that they
/// see, and their scores.
template <class T>
class QueryBlock {
 public:
  /// Begins query block `block` of `head`, which must outlive its use: scales its queries, finds
  /// temperatures and key blocks.
  void begin(const HeadOperands<T>& head, Index block);
  Index count() const { return std::ssize(visible_); }  ///< number of its queries
  Index first() const { return first_; }                ///< position of its first query
  /// Key blocks that some query sees.
  std::span<const mask::BlockEntry> entries() const { return entries_; }

  /// Finds the keys that `rows` (counted from the first query of the block) see in `entries`, a
  /// part of entries(), and places them as `placement` says; returns how many columns they take.
  Index find(mask::Range rows, std::span<const mask::BlockEntry> entries, Placement placement);
  const std::vector<TileRun>& runs() const { return runs_; }  ///< keys that find() found
  /// Fills the columns of `scores` that find() assigned with the scores of `rows`, times the
  /// temperature; −∞ where hidden. Row 0 of `scores` is rows.begin.
  void make_scores(mask::Range rows, MatrixView<T> scores) const;

  /// The queries as left operand: row r times factor r; pairs are not scaled.
  MatrixView<const T> query() const { return query_view_; }
  /// What multiplies the queries before or after the product, one number a row.
  std::span<const T> factors() const { return factors_; }
  /// The number of keys that row `r` sees.
  Index visible(Index r) const { return visible_[static_cast<std::size_t>(r)]; }
  /// The factor of the scores of row `r` after the product: 1 if the queries already have it.
  T temperature(Index r) const { return temperatures_[static_cast<std::size_t>(r)]; }

 private:
  void list_entries(Index block);
  std::uint64_t visible_word(const mask::BlockEntry& entry, Index r) const;
  void hide(mask::Range rows, MatrixView<T> scores) const;

  const HeadOperands<T>* head_ = nullptr;
  Index first_ = 0;
  PaddedMatrix<T> query_;
  MatrixView<T> query_view_;
  std::vector<T> factors_, temperatures_;
  std::vector<Index> visible_;
  std::vector<mask::BlockEntry> entries_;
  std::vector<TilePiece> pieces_;  ///< in the order of keys
  std::vector<TileRun> runs_;      ///< runs of the pieces
};

/// Changes the numerators of a tile before they meet the values: `x` has those of the queries from
/// `first` on, in the columns of `runs`. The divisors are those of the unchanged ones.
template <class T>
using NumeratorHook =
    std::function<void(Index first, std::span<const TileRun> runs, MatrixView<T> x)>;

/// What the forward pass of a query block writes. Rows are those of the block; views without
/// elements are left out.
template <class T>
struct BlockOutputs {
  MatrixView<T> context;  ///< (queries, value size)
  MatrixView<T> weights;  ///< (queries, keys), 0 before. Needs a single step.
  /// (queries): shift plus log of the divisor; rows without numerators are left as they are.
  std::span<T> log_divisors;
  /// (queries, keys): times the temperature; hidden ones are left as they are.
  MatrixView<T> scores;
  /// (queries): what weights_of_scores() recomputes a row from: log_divisors for exponentials, else
  /// the divisor, +∞ for a row without numerators.
  std::span<T> saved;
};

/// Whether BlockOutputs::saved holds logarithms for this `map`.
inline bool saves_logarithm(ScoreMap map) { return map == ScoreMap::kExp; }

/// The forward pass of query blocks; keeps its buffers from one to the next.
template <class T>
class BlockAttention {
 public:
  /// Sets `out` from query block `block` of `head`, whose values are `value` as they are. `step` is
  /// the number of key blocks that it takes at once: largest scores, sums and the context are
  /// carried from one to the next. `hook` may be null.
  void run(const HeadOperands<T>& head, const PackedMatrix<T>& value, Index block, Index step,
           const BlockOutputs<T>& out, const NumeratorHook<T>* hook = nullptr);

 private:
  void begin();
  void run_tile(mask::Range rows, std::span<const mask::BlockEntry> entries);
  void map_rows(mask::Range rows, MatrixView<T> scores);
  T divisor(Index r) const;
  void write_scores(mask::Range rows, MatrixView<const T> scores) const;
  void write_weights(mask::Range rows, MatrixView<const T> numerators) const;
  void write_rows() const;

  const HeadOperands<T>* head_ = nullptr;
  const PackedMatrix<T>* value_ = nullptr;
  const BlockOutputs<T>* out_ = nullptr;
  const NumeratorHook<T>* hook_ = nullptr;
  ScoreMap map_ = ScoreMap::kExp;
  Divisor divisor_ = Divisor::kSum;
  QueryBlock<T> block_;
  PaddedMatrix<T> scores_, context_, sums_;
  MatrixView<T> context_view_, sums_view_;
  std::vector<tile::RowState<T>> states_;
};

/// Number of blocks of 64 of `positions` queries or keys.
inline Index block_count(Index positions) { return divide_up(positions, mask::BlockMap::kBlock); }

/// Turns the rows of `x` into the left operand of a product that takes `operands`, in place: pairs,
/// rounded numbers, or nothing to do.
template <class T>
void to_left_operand(MatrixView<T> x, OperandFormat operands);
/// `out` = `rows`, a left operand, times the columns of `b` from `column` on; pairs
/// times `factors` of their row.
template <class T>
void multiply_rows(MatrixView<const T> rows, const PackedMatrix<T>& b, Index column,
                   std::span<const T> factors, MatrixView<T> out);
/// `sums` += Σ over `runs` of (columns of the run in the left operand `x`) · (rows of `b` of its
/// keys, of `keys` in all).
template <class T>
void add_products(MatrixView<const T> x, std::span<const TileRun> runs, Index keys,
                  const PackedMatrix<T>& b, MatrixView<T> sums);

}  // namespace masque::nn
