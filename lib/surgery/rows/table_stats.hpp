// Looking at an embedding table: norms, anisotropy, neighbours, and two tables side by side.
#pragma once

#include <string>
#include <vector>

#include "surgery/rows/row_map.hpp"

namespace masque::surgery {

/// Numbers about a table's rows. Sums run in fixed blocks: the same for any thread count.
struct TableStats {
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  double norm_minimum = 0;
  double norm_mean = 0;
  double norm_maximum = 0;
  double norm_deviation = 0;  ///< population standard deviation
  std::uint64_t zero_rows = 0;
  std::uint64_t not_finite_rows = 0;  ///< left out of everything else
  double mean_norm = 0;               ///< norm of the mean row
  /// Mean cosine over all pairs of different rows (rows of norm 0 left out): 0 for directions that
  /// spread evenly, towards 1 for a narrow cone. Ethayarajh 2019, arXiv:1909.00512.
  double mean_cosine = 0;
  std::vector<double> mean;  ///< the mean row
};

TableStats table_stats(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                       int threads);

/// One row against the mean row.
struct RowAgainstMean {
  double norm;
  double cosine;    ///< with the mean; NaN if either is 0
  double distance;  ///< Euclidean, from the mean
};

RowAgainstMean row_against_mean(const store::Checkpoint& checkpoint, const store::TensorInfo& table,
                                std::uint64_t row, const std::vector<double>& mean);

struct Neighbour {
  std::uint64_t row;
  double cosine;
};

/// The `count` rows nearest to `row` by cosine, without itself; equal ones by ascending row. Rows
/// of norm 0 or with values that are not finite are left out. Throws InputError if `row` is such.
std::vector<Neighbour> nearest_rows(const store::Checkpoint& checkpoint,
                                    const store::TensorInfo& table, std::uint64_t row,
                                    std::size_t count, int threads);

/// How one row differs between two tables.
struct RowChange {
  std::uint64_t row;
  double norm_a;
  double norm_b;
  double distance;
  double cosine;
};

/// Two tables of equal width, compared over the rows that both have.
struct TableDiff {
  std::uint64_t rows = 0;     ///< compared
  std::uint64_t changed = 0;  ///< of these, with any other value
  double max_distance = 0;
  double mean_cosine = 1;      ///< over the changed rows
  std::vector<RowChange> top;  ///< the most distant ones, then by row
};

/// Throws InputError if the widths differ.
TableDiff table_diff(const store::Checkpoint& a, const store::TensorInfo& in_a,
                     const store::Checkpoint& b, const store::TensorInfo& in_b, std::size_t top,
                     int threads);

}  // namespace masque::surgery
