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
  double scale = 1;
  std::vector<double> shift;  ///< one number a column
  std::vector<bool> kept;     ///< one a row; true: the bytes stay
};

/// How far some rows moved. Norms are Euclidean, over the rows that are not kept.
struct RowMoves {
  std::uint64_t rows = 0;
  double sum_norm_before = 0;
  double sum_norm_after = 0;
  double sum_relative = 0;  ///< Σ ‖row′ − row‖ / ‖row‖ (rows of norm 0 add 0)
  double max_relative = 0;
  double sum_cosine = 0;
  double min_cosine = 1;
  std::uint64_t min_cosine_row = 0;
  std::uint64_t overflow_row = kNone;  ///< a finite row whose result is not; kNone if there is none

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  /// Adds later rows. The order matters for the last bits: add blocks in row order.
  void add(const RowMoves& later);
};

/// Rows per block: a fixed number that depends on the table only, so that sums over blocks are the
/// same for any thread count.
std::uint64_t rows_per_block(const store::TensorInfo& table);

/// Applies a map to rows `first_row` … of a table. `in` and `out` hold whole rows and may be the
/// same memory.
RowMoves map_rows(const AffineRows& map, DType dtype, std::uint64_t width, std::uint64_t first_row,
                  Bytes in, MutableBytes out);

/// Calls work(first_row, rows) for every block of rows with the values decoded, several at a time.
void for_each_row_block(
    const store::Checkpoint& checkpoint, const store::TensorInfo& table, int threads,
    const std::function<void(std::uint64_t first_row, std::span<const double> rows)>& work);

/// Σ weight[i]·row i over all rows. Without weights every row counts once.
std::vector<double> weighted_row_sum(const store::Checkpoint& checkpoint,
                                     const store::TensorInfo& table,
                                     std::span<const double> weights, int threads);

/// One row, decoded.
std::vector<double> read_row(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                             std::uint64_t row);

/// Σ a[i]·b[i] in eight fixed lanes: the same bits on every instruction set.
double dot(std::span<const double> a, std::span<const double> b);

}  // namespace masque::surgery
