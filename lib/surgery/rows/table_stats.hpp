// Looking at an embedding table: norms, anisotropy, neighbours, and two tables side by side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/checkpoint.hpp"
#include "store/transfer.hpp"
#include "surgery/rows/row_map.hpp"

namespace masque::surgery {

/// Numbers about a table's rows. Norms are Euclidean. Sums run in fixed blocks: the same for any
/// thread count.
struct TableStats {
  std::uint64_t rows = 0;             ///< all rows of the table
  std::uint64_t width = 0;            ///< columns
  double norm_minimum = 0;            ///< smallest norm of a row
  double norm_mean = 0;               ///< mean norm of the rows
  double norm_maximum = 0;            ///< largest norm of a row
  double norm_deviation = 0;          ///< population standard deviation
  std::uint64_t zero_rows = 0;        ///< rows of norm 0
  std::uint64_t not_finite_rows = 0;  ///< left out of everything but `rows`
  double mean_norm = 0;               ///< norm of the mean row
  /// Mean cosine over all pairs of different rows (rows of norm 0 left out): 0 for directions that
  /// spread evenly, towards 1 for a narrow cone; NaN for fewer than two such rows. Ethayarajh 2019,
  /// arXiv:1909.00512.
  double mean_cosine = 0;
  std::vector<double> mean;  ///< the mean row, [width]
};

/// The numbers of `table` [rows, width] of `checkpoint`, on up to `threads` threads (≤ 0: all
/// processors). Reads the table once. Throws InputError if no row is finite.
TableStats table_stats(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                       int threads);

/// One row against the mean row.
struct RowAgainstMean {
  double norm;      ///< Euclidean, of the row
  double cosine;    ///< with the mean; NaN if either is 0
  double distance;  ///< Euclidean, from the mean
};

/// The row `row` of `table` of `checkpoint` against `mean`, [width], as of TableStats.
RowAgainstMean row_against_mean(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                                std::uint64_t row, const std::vector<double>& mean);

/// A row that is near to another one.
struct Neighbour {
  std::uint64_t row;  ///< its id
  double cosine;      ///< with the other row
};

/// The `count` rows (at least 1 must be asked for) of `table` of `checkpoint` nearest to `row` by
/// cosine, nearest first, without itself; equal ones by ascending row. Rows of norm 0 or with
/// values that are not finite are left out. Reads the table once, on up to `threads` threads (≤ 0:
/// all processors). Throws InputError if `row` is such.
std::vector<Neighbour> nearest_rows(const store::Checkpoint& checkpoint,
                                    const store::TensorInfo& table, std::uint64_t row,
                                    std::size_t count, int threads);

/// How one row differs between two tables.
struct RowChange {
  std::uint64_t row;  ///< its id
  double norm_a;      ///< Euclidean, in the first table
  double norm_b;      ///< Euclidean, in the second table
  double distance;    ///< Euclidean; infinite instead of NaN
  double cosine;      ///< of both rows; 1 if a norm is 0 or NaN
};

/// Two tables of equal width, compared over the rows that both have.
struct TableDiff {
  std::uint64_t rows = 0;      ///< compared
  std::uint64_t changed = 0;   ///< of these, with any other value
  double max_distance = 0;     ///< Euclidean, of a row
  double mean_cosine = 1;      ///< over the changed rows
  std::vector<RowChange> top;  ///< the most distant ones, then by row
};

/// Compares the table `in_a` of `a` with the table `in_b` of `b` and lists the `top` most distant
/// rows. Reads both once, on up to `threads` threads (≤ 0: all processors). Throws InputError if
/// the widths differ.
TableDiff table_diff(const store::Checkpoint& a, const store::TensorInfo& in_a,
                     const store::Checkpoint& b, const store::TensorInfo& in_b, std::size_t top,
                     int threads);

// The nearest rows of every row of a table at once.

/// Which neighbours similar_rows() looks for.
struct SimilarRowsRequest {
  std::size_t count = 10;  ///< rows for each row
  /// 1 for rows that are nobody's neighbour and have none; may be short.
  std::vector<std::uint8_t> skip;
  int threads = 0;                        ///< ≤ 0: all processors
  store::ProgressFunction progress = {};  ///< rows of the table; may be empty
};

/// For every row of `table` [rows, width] of `checkpoint` the count of `request` rows with the
/// largest cosine, nearest first, equal ones by ascending row; rows of norm 0 or with values that
/// are not finite have none and are none. Rows are normalised in double and compared in float:
/// neighbours whose cosines differ by less than 1e-6 may change places. Cost rows² · width; memory:
/// the table in F32, and 8 bytes a neighbour. The same for any number of threads. The table must
/// have at most 2³² − 1 rows.
std::vector<std::vector<std::uint32_t>> similar_rows(const store::Checkpoint& checkpoint,
                                                     const store::TensorInfo& table,
                                                     const SimilarRowsRequest& request);

}  // namespace masque::surgery
