// Matrices of numbers in memory: an owner and a view. Row-major; shapes change in named functions.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "base/types.hpp"

namespace masque {

/// Rows of a matrix that somebody else owns, which must outlive the view. Row-major: row i begins
/// at data + i · stride. Copying copies the view, not the elements.
template <class T>
struct MatrixView {
  T* data = nullptr;  ///< the first element; null in an empty view
  Index rows = 0;     ///< number of rows
  Index columns = 0;  ///< elements in a row
  Index stride = 0;   ///< elements from one row's begin to the next; ≥ columns

  MatrixView() = default;
  /// Views `row_count` rows of `column_count` elements at `first`, without gaps between rows.
  MatrixView(T* first, Index row_count, Index column_count)
      : data(first), rows(row_count), columns(column_count), stride(column_count) {}
  /// Views `row_count` rows of `column_count` elements; row i begins at first + i · row_stride.
  MatrixView(T* first, Index row_count, Index column_count, Index row_stride)
      : data(first), rows(row_count), columns(column_count), stride(row_stride) {}
  /// The view `other`, which may write, as one that only reads.
  template <class U>  // NOLINTNEXTLINE(google-explicit-constructor): as span does
  requires std::is_same_v<T, const U> MatrixView(const MatrixView<U>& other)
      : data(other.data), rows(other.rows), columns(other.columns), stride(other.stride) {}

  /// Row `i`, counted from 0. No index is checked, here and below.
  T* row(Index i) const { return data + i * stride; }
  /// Element `j` of row `i`.
  T& at(Index i, Index j) const { return data[i * stride + j]; }
  /// The `columns` elements of row `i`.
  std::span<T> row_span(Index i) const { return {row(i), static_cast<std::size_t>(columns)}; }
  /// Rows `first` … first + count − 1.
  MatrixView middle_rows(Index first, Index count) const {
    return {data + first * stride, count, columns, stride};
  }
  /// Columns `first` … first + count − 1 of all rows.
  MatrixView middle_columns(Index first, Index count) const {
    return {data + first, rows, count, stride};
  }
  /// True if there are no elements.
  bool empty() const { return rows == 0 || columns == 0; }
};

/// Owns rows × columns elements, row-major, without gaps, aligned to 64 bytes. T is trivially
/// destructible. Movable, not copyable: see copy().
template <class T>
class Matrix {
 public:
  Matrix() = default;
  /// A matrix of `rows` × `columns` elements, which are not initialised.
  Matrix(Index rows, Index columns) : rows_(rows), columns_(columns), capacity_(rows * columns) {
    if (rows * columns > 0) {
      data_.reset(static_cast<T*>(
          ::operator new[](static_cast<std::size_t>(rows * columns) * sizeof(T), kAlignment)));
    }
  }
  /// A matrix of `rows` × `columns` zeros.
  static Matrix zero(Index rows, Index columns) {
    Matrix result(rows, columns);
    std::uninitialized_value_construct_n(result.data(), rows * columns);
    return result;
  }
  /// A matrix with the elements of `from`, without gaps between rows.
  static Matrix copy(MatrixView<const T> from) {
    Matrix result(from.rows, from.columns);
    for (Index i = 0; i < from.rows; ++i) {
      std::uninitialized_copy_n(from.row(i), from.columns, result.view().row(i));
    }
    return result;
  }

  Index rows() const { return rows_; }        ///< number of rows
  Index columns() const { return columns_; }  ///< elements in a row
  /// The first element; null if no memory was ever needed. Valid until the next resize(), as all
  /// views and spans are.
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }                    ///< the same for reading
  MatrixView<T> view() { return {data_.get(), rows_, columns_}; }  ///< all elements, for writing
  /// All elements, for reading.
  MatrixView<const T> view() const { return {data_.get(), rows_, columns_}; }
  /// All rows × columns elements as one row-major run, for writing.
  std::span<T> span() { return {data_.get(), static_cast<std::size_t>(rows_ * columns_)}; }
  /// The same for reading.
  std::span<const T> span() const {
    return {data_.get(), static_cast<std::size_t>(rows_ * columns_)};
  }

  /// Makes it `rows` × `columns`; the content is lost, and views of it are no longer valid. Keeps
  /// the memory where it is enough.
  void resize(Index rows, Index columns) {
    if (rows * columns > capacity_) *this = Matrix(rows, columns);
    rows_ = rows;
    columns_ = columns;
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(T* data) const { ::operator delete[](data, kAlignment); }
  };
  static_assert(std::is_trivially_destructible_v<T>);
  Index rows_ = 0;
  Index columns_ = 0;
  Index capacity_ = 0;
  std::unique_ptr<T[], Free> data_;
};

}  // namespace masque
