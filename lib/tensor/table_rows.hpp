// Rows of a trained table of positions, and positions beyond its end.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "base/error.hpp"
#include "base/types.hpp"
#include "tensor/matrix.hpp"

namespace masque {

/// The vector p_k of a position as a weighted sum of rows of a position table [rows, size].
struct TableRows {
  /// A row of the table and its weight in the sum.
  struct Part {
    Index row = 0;      ///< counts from 0
    double weight = 0;  ///< factor of the row; may be negative
  };
  std::array<Part, 3> parts;  ///< the first `count` are used
  std::size_t count = 1;      ///< number of parts: 1, 2 or 3
};

/// How many positions a table of `rows` rows has in table_rows(): N², or N if `alpha` is 0.
inline Index table_positions(Index rows, double alpha) {
  if (alpha == 0) return rows;
  constexpr Index kRoot = Index{1} << 31;
  return rows < kRoot ? rows * rows : std::numeric_limits<Index>::max();
}

/// The vector of `position`, counted from 0, by a table of N = `rows` rows. Within the table it is
/// the position's row; below 0, row 0. Beyond, with k = qN + r, it is the hierarchical extension of
/// Su 2020 (kexue.fm/archives/7947) α u_q + (1 − α) u_r, u = (p − α p_0) / (1 − α), that is p_r +
/// α/(1 − α) (p_q − p_0), up to position N² − 1; later positions have the vector of that one. With
/// `alpha` = α 0 it is the last row. α is not 1; rows > 0.
inline TableRows table_rows(Index position, Index rows, double alpha) {
  MASQUE_CHECK(rows > 0);
  position = std::max<Index>(position, 0);
  if (position < rows) return {{{{position, 1.0}}}, 1};
  if (alpha == 0) return {{{{rows - 1, 1.0}}}, 1};
  const Index capped = std::min(position, rows * rows - 1);
  const double upper = alpha / (1 - alpha);
  return {{{{capped % rows, 1.0}, {capped / rows, upper}, {0, -upper}}}, 3};
}

/// The vector of a `position` ≥ 0 between two rows of a table of `rows` rows: on the line that
/// joins their rows; after the last row, the last row.
inline TableRows table_rows_between(double position, Index rows) {
  MASQUE_CHECK(rows > 0 && position >= 0);
  const auto low = std::min(static_cast<Index>(std::floor(position)), rows - 1);
  const Index high = std::min(low + 1, rows - 1);
  const double above = position - static_cast<double>(low);
  if (above == 0 || low == high) return {{{{low, 1.0}}}, 1};
  return {{{{low, 1 - above}, {high, above}}}, 2};
}

/// Adds to `out`, out.size() numbers, the weighted sum of `rows` of `table` [rows, ≥ out.size()].
template <class T>
void add_rows(MatrixView<const T> table, const TableRows& rows, std::span<T> out) {
  for (std::size_t k = 0; k < rows.count; ++k) {
    const auto [row, weight] = rows.parts[k];
    for (std::size_t d = 0; d < out.size(); ++d) {
      out[d] += static_cast<T>(weight) * table.at(row, static_cast<Index>(d));
    }
  }
}

/// The gradient of add_rows with respect to the table: adds weight · `d_out` to each of the `rows`
/// in `d_table`. Does nothing if d_table has no data.
template <class T>
void add_rows_backward(std::span<const T> d_out, const TableRows& rows, MatrixView<T> d_table) {
  if (d_table.data == nullptr) return;
  for (std::size_t k = 0; k < rows.count; ++k) {
    const auto [row, weight] = rows.parts[k];
    for (std::size_t d = 0; d < d_out.size(); ++d) {
      d_table.at(row, static_cast<Index>(d)) += static_cast<T>(weight) * d_out[d];
    }
  }
}

}  // namespace masque
