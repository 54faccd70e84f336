// Products of queries or keys with the rows of a position table.
#pragma once

#include <complex>

#include "nn/tile.hpp"

namespace masque::nn {

/// Rows w (R, size) of a table, kept for products x · wᵀ with a few x at a time. Thread-safe once
/// made.
template <class T>
class RowProducts {
 public:
  /// Packs `table`; std::complex tables are borrowed instead.
  explicit RowProducts(MatrixView<const T> table) : table_(table) {
    if constexpr (kPacks) {
      packed_.resize(kernel::strips_of<T>(table.rows), table.columns * tile::kLanes<T>);
      tile::pack_transposed(table, tile::Strips<T>{packed_.data(), packed_.columns()});
    }
  }

  /// Products of the rows of `x` (any, size) with the rows [`first`, `last`) of the table,
  /// (x.rows, last − first). Returns them as a part of `out`, which is resized. An element depends
  /// on its two vectors alone.
  MatrixView<const T> of(MatrixView<const T> x, Index first, Index last, Matrix<T>& out) const {
    if constexpr (kPacks) {
      const Index begin = first / tile::kLanes<T> * tile::kLanes<T>;
      out.resize(x.rows, tile::round_up(last - begin, tile::kLanes<T>));
      const tile::Strips<const T> all{packed_.data(), packed_.columns()};
      tile::multiply<T>(x, all.from_column(begin), out.view(), false);
      return MatrixView<const T>(out.view()).middle_columns(first - begin, last - first);
    } else {
      out.resize(x.rows, last - first);
      for (Index i = 0; i < x.rows; ++i) {
        for (Index r = first; r < last; ++r) {
          T sum{};
          for (Index d = 0; d < x.columns; ++d) sum += x.at(i, d) * table_.at(r, d);
          out.view().at(i, r - first) = sum;
        }
      }
      return out.view();
    }
  }

 private:
  static constexpr bool kPacks = !std::is_same_v<T, std::complex<double>>;
  MatrixView<const T> table_;
  Matrix<T> packed_;
};

}  // namespace masque::nn
