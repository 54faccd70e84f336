// Rows of a trained table of positions, and positions beyond its end.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.hpp"
#include "base/types.hpp"
#include "tensor/matrix.hpp"

namespace masque {

/// p_k as a sum of rows of the table.
struct TableRows {
  struct Part {
    Index row = 0;
    double weight = 0;
  };
  std::array<Part, 3> parts;
  std::size_t count = 1;
};

/// Within the table of N rows its row. Beyond, with k = qN + r, the hierarchical extension of
/// Su 2020 (kexue.fm/archives/7947) α u_q + (1 − α) u_r, u = (p − α p_0) / (1 − α), that is
/// p_r + α/(1 − α) (p_q − p_0), up to N² − 1 and from there the last; with alpha 0 the last row.
inline TableRows table_rows(Index position, Index rows, double alpha) {
  MASQUE_CHECK(rows > 0);
  position = std::max<Index>(position, 0);
  if (position < rows) return {{{{position, 1.0}}}, 1};
  if (alpha == 0) return {{{{rows - 1, 1.0}}}, 1};
  const Index capped = std::min(position, rows * rows - 1);
  const double upper = alpha / (1 - alpha);
  return {{{{capped % rows, 1.0}, {capped / rows, upper}, {0, -upper}}}, 3};
}

/// What stands between two positions: on the line that joins their rows; after the last row that
/// one.
inline TableRows table_rows_between(double position, Index rows) {
  MASQUE_CHECK(rows > 0 && position >= 0);
  const auto low = std::min(static_cast<Index>(std::floor(position)), rows - 1);
  const Index high = std::min(low + 1, rows - 1);
  const double above = position - static_cast<double>(low);
  if (above == 0 || low == high) return {{{{low, 1.0}}}, 1};
  return {{{{low, 1 - above}, {high, above}}}, 2};
}

/// out += weight of each part · its row.
template <class T>
void add_rows(MatrixView<const T> table, const TableRows& rows, std::span<T> out) {
  for (std::size_t k = 0; k < rows.count; ++k) {
    const auto [row, weight] = rows.parts[k];
    for (std::size_t d = 0; d < out.size(); ++d) {
      out[d] += static_cast<T>(weight) * table.at(row, static_cast<Index>(d));
    }
  }
}

/// The gradient of add_rows by the table; nothing without data.
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
