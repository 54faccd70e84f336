// Maps on the rows of a table: what they compute, and how far they move the rows.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "store/checkpoint.hpp"

namespace masque::surgery {

/// row′ = scale·row + shift for every row that is not kept; computed in double, rounded once.
struct AffineRows {
  double scale = 1;           ///< factor of every row that is not kept
  std::vector<double> shift;  ///< one number a column
  std::vector<bool> kept;     ///< one a row; true: the bytes stay
};

/// How far some rows moved. Norms are Euclidean, over the rows that are not kept.
struct RowMoves {
  std::uint64_t rows = 0;            ///< number of rows that are not kept
  double sum_norm_before = 0;        ///< Σ ‖row‖
  double sum_norm_after = 0;         ///< Σ ‖row′‖, in double, before rounding
  double sum_relative = 0;           ///< Σ ‖row′ − row‖ / ‖row‖ (rows of norm 0 add 0)
  double max_relative = 0;           ///< the largest of these terms
  double sum_cosine = 0;             ///< Σ cos(row, row′) (rows of norm 0 add 1)
  double min_cosine = 1;             ///< the smallest of these terms, at most 1
  std::uint64_t min_cosine_row = 0;  ///< the first row with it; 0 if no cosine is below 1
  std::uint64_t overflow_row = kNone;  ///< a finite row whose result is not; kNone if there is none

  /// No row.
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  /// Adds the sums and extremes of `later`, the rows that follow. The order matters for the last
  /// bits: add blocks in row order.
  void add(const RowMoves& later);
};

/// Rows per block, about 1 MiB: a fixed number that depends on `table` only, so that sums over
/// blocks are the same for any thread count.
std::uint64_t rows_per_block(const store::TensorInfo& table);

/// Applies `map` to the rows `first_row` … of a table. `in` and `out` hold the bytes of the same
/// number of whole rows, each `width` numbers of `dtype`, and may be the same memory. A result
/// beyond the type is written as infinity and reported in overflow_row.
RowMoves map_rows(const AffineRows& map, DType dtype, std::uint64_t width, std::uint64_t first_row,
                  Bytes in, MutableBytes out);

/// Calls `work`(first_row, rows) for every block of rows_per_block() rows of `table` [rows, width]
/// of `checkpoint`, from up to `threads` threads (≤ 0: all processors). `rows` are whole rows from
/// `first_row` on, decoded, row-major, valid during the call. Throws InputError if a block cannot
/// be read, and what `work` throws.
void for_each_row_block(
    const store::Checkpoint& checkpoint, const store::TensorInfo& table, int threads,
    const std::function<void(std::uint64_t first_row, std::span<const double> rows)>& work);

/// Σ weights[i]·row i over all rows of `table` [rows, width] of `checkpoint`, as width numbers.
/// With empty `weights` every row counts once; a row of weight 0 may hold anything. Reads the table
/// once, on up to `threads` threads (≤ 0: all processors); the sum does not depend on their number.
std::vector<double> weighted_row_sum(const store::Checkpoint& checkpoint,
                                     const store::TensorInfo& table,
                                     std::span<const double> weights, int threads);

/// The row `row` of `table` [rows, width] of `checkpoint`, decoded: width numbers.
std::vector<double> read_row(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                             std::uint64_t row);

/// Σ `a`[i]·`b`[i] in eight fixed lanes: the same bits on every instruction set. Both have one
/// length.
double dot(std::span<const double> a, std::span<const double> b);

}  // namespace masque::surgery
