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

/// A row more than a power of two apart: else all rows share few lines of the cache.
template <class T>
Index padded_stride(Index columns) {
  return tile::round_up(columns, 2 * tile::kLanes<T>) + tile::kLanes<T>;
}

/// What the products of a problem take.
template <class T>
Operands operands_of(const AttentionProblem<T>& problem) {
  if (!problem.bf16) return Operands::kPlain;
  return std::is_same_v<T, float> && tile::has_pairs() ? Operands::kPairs : Operands::kRounded;
}

/// A packed matrix and its memory.
template <class T>
class PackedMatrix {
 public:
  /// x as it is: what weights and gradients of scores are multiplied with.
  void pack(MatrixView<const T> x, Operands operands);
  /// The transpose of x: what queries are multiplied with.
  void pack_transposed(MatrixView<const T> x, Operands operands);
  tile::Strips<const T> whole() const { return {memory_.data(), memory_.columns()}; }
  /// From a row of its depth on, an even one.
  tile::Strips<const T> from_depth(Index depth) const {
    return whole().from_depth(operands_ == Operands::kPairs ? depth / 2 : depth);
  }
  /// From a column on, a multiple of kLanes.
  tile::Strips<const T> from_column(Index column) const { return whole().from_column(column); }
  Operands operands() const { return operands_; }

 private:
  tile::Strips<T> shape(Index columns, Index depth);
  Operands operands_ = Operands::kPlain;
  Matrix<T> memory_;
};

/// A matrix with room at the end of its rows, kept.
template <class T>
struct PaddedMatrix {
  Matrix<T> memory;
  MatrixView<T> shape(Index rows, Index columns) {
    memory.resize(rows, padded_stride<T>(columns));
    return {memory.data(), rows, columns, memory.columns()};
  }
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
  void take(MatrixView<const T> x, bool unit, Operands operands);
  MatrixView<const T> plain() const { return plain_; }      ///< as position terms see it
  MatrixView<const T> product() const { return product_; }  ///< as products take it

 private:
  Matrix<T> unit_, rounded_;
  MatrixView<const T> plain_, product_;
};

/// What multiplies q·k.
template <class T>
double product_scale(const AttentionProblem<T>& problem) {
  // With a scale of 0 the position terms are the whole score.
  return problem.normalizer->scaled() || problem.scale == 0 ? problem.scale : 1;
}

/// One head: its queries and the keys packed for them.
template <class T>
struct HeadOperands {
  const AttentionProblem<T>* problem = nullptr;
  const TileOperand<T>* query = nullptr;
  const PackedMatrix<T>* key_transposed = nullptr;
  const HeadBias<T>* bias = nullptr;
  Index keys() const { return problem->key.rows; }
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
  /// Scales the queries, finds temperatures and key blocks.
  void begin(const HeadOperands<T>& head, Index block);
  mask::Range rows() const { return {first_, first_ + std::ssize(visible_)}; }
  Index count() const { return std::ssize(visible_); }
  Index first() const { return first_; }
  const std::vector<mask::BlockEntry>& entries() const { return entries_; }

  /// Finds the keys that the rows (of the block) see in some entries; returns how many columns
  /// they take.
  Index find(mask::Range rows, std::span<const mask::BlockEntry> entries, Placement placement);
  const std::vector<TileRun>& runs() const { return tile_.runs; }
  /// Fills the columns of what was found, times the temperature; −∞ where hidden. Row 0 of `scores`
  /// is rows.begin.
  void make_scores(const HeadOperands<T>& head, mask::Range rows, MatrixView<T> scores) const;

  /// Row r times factor r; pairs are not scaled.
  MatrixView<const T> query() const { return query_view_; }
  /// What multiplies queries before or after the product.
  std::span<const T> factors() const { return factors_; }
  Index visible(Index r) const { return visible_[static_cast<std::size_t>(r)]; }
  /// What is left to be multiplied with after the product: 1 if the queries have it.
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

/// Number of query blocks.
inline Index blocks_of(Index queries) {
  return (queries + mask::BlockMap::kBlock - 1) / mask::BlockMap::kBlock;
}

/// Multiplies what stands in the columns of the runs with its dropout factors. Row 0 of x is query
/// `first` of the head.
template <class T>
void drop(const DifferentiableAttention<T>& attention, Index head, Index first,
          std::span<const TileRun> runs, MatrixView<T> x);

/// Keys by DifferentiableBackward::own_keys.
enum class Keys { kOwn, kEarlier };
/// to ← x, with 0 where a key of the runs is not one of `keys`. `own_keys`: of each row.
template <class T>
void copy_part(Keys keys, std::span<const Index> own_keys, MatrixView<const T> x,
               std::span<const TileRun> runs, MatrixView<T> to);

/// Rows of x as the left operand of a product: `memory` holds them unless they can stay.
template <class T>
MatrixView<const T> left_operand(MatrixView<const T> x, Operands operands, PaddedMatrix<T>& memory);
/// The same in place.
template <class T>
void to_left_operand(MatrixView<T> x, Operands operands);
/// out = (rows of a left operand) · b; pairs times `factors` of their row.
template <class T>
void multiply_rows(MatrixView<const T> rows, const PackedMatrix<T>& b, Index column,
                   std::span<const T> factors, MatrixView<T> out);
/// sums += (columns of a run of left operands) · (rows of b of its keys).
template <class T>
void add_product(MatrixView<const T> x, const TileRun& run, Index keys, const PackedMatrix<T>& b,
                 MatrixView<T> sums);

/// The keys of a run that there are.
inline Index keys_of(const TileRun& run, Index keys) {
  return std::min(run.keys.end, keys) - run.keys.begin;
}

// What one thread does, of one key head.
template <class T>
void forward_key_head(const DifferentiableForward<T>& sequence, Index group);
template <class T>
void backward_key_head(const DifferentiableBackward<T>& sequence, Index group);

}  // namespace masque::nn::differentiable
