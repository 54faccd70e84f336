// Matrices whose rows are read when they are wanted: weights that stay in their file until they are
// packed for products, in the form that products take.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/error.hpp"
#include "tensor/matrix.hpp"

namespace masque {

/// Whole numbers and their scales: element i of a row is codes[i] · scales[i / part] − minima[i /
/// part], in float: the product is rounded, then the difference. Borrowed.
struct RowCodes {
  std::span<std::int8_t> codes;  ///< one an element, row by row
  std::span<float> scales;       ///< one for each part of a row, row by row
  std::span<float> minima;       ///< as many; 0 where the numbers have none
};

/// A matrix (rows, columns) of floats. Immutable and thread-safe.
class RowSource {
 public:
  RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;
  virtual ~RowSource() = default;

  virtual Index rows() const = 0;     ///< number of rows
  virtual Index columns() const = 0;  ///< elements of a row
  /// Fills `out` (any number of rows, columns()) with the rows from `first` on, without gaps
  /// between the rows of `out`. Throws InputError, for numbers that are not finite, too.
  virtual void read(Index first, MatrixView<float> out) const = 0;

  /// Whether all numbers are bfloat16 by the type that they are stored in.
  virtual bool is_bf16() const { return false; }

  /// Elements that follow each other in a row and share a scale, a divisor of columns(), where
  /// read_codes() gives the same numbers as read(), bit for bit; 0: it does not.
  virtual Index part() const { return 0; }
  /// Whether read_codes() gives minima other than 0.
  virtual bool has_minima() const { return false; }
  /// Fills `out` with `count` rows from `first` on. Only if part() > 0. Throws as read().
  virtual void read_codes(Index /*first*/, Index /*count*/, const RowCodes& /*out*/) const {
    MASQUE_CHECK(false);
  }
};

/// The matrix `view` in memory, which is borrowed, as a source.
class RowsInMemory final : public RowSource {
 public:
  /// The rows of `view`, which must outlive this.
  explicit RowsInMemory(MatrixView<const float> view) : view_(view) {}
  Index rows() const override { return view_.rows; }
  Index columns() const override { return view_.columns; }
  void read(Index first, MatrixView<float> out) const override {
    for (Index i = 0; i < out.rows; ++i) {
      const auto row = view_.row_span(first + i);
      std::copy(row.begin(), row.end(), out.row(i));
    }
  }

 private:
  MatrixView<const float> view_;
};

}  // namespace masque
