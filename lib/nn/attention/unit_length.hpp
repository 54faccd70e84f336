// Queries and keys as a normalizer wants them: some brought to Euclidean length 1, head by head.
// Every evaluation and every gradient comes through here. T is float, double or
// std::complex<double>.
#pragma once

#include <cmath>
#include <complex>

#include "nn/attention/attention.hpp"

namespace masque::nn {

/// The Euclidean length of a row of a head, as `largest` · `rest`, so that no square overflows.
template <class T>
struct RowLength {
  double largest = 0;  ///< largest |x|; 0 only for a zero vector
  T rest{};            ///< the length of x / largest
};

/// The Euclidean length of `x`; NaN stays.
template <class T>
RowLength<T> row_length(std::span<const T> x) {
  using std::abs;
  using std::sqrt;
  RowLength<T> out;
  for (const T& element : x) {
    const auto size = static_cast<double>(abs(element));
    if (!(size <= out.largest)) out.largest = size;  // also NaN
  }
  if (out.largest == 0) return out;
  T sum{};
  for (const T& element : x) {
    const T y = element / static_cast<T>(out.largest);
    sum += y * y;
  }
  out.rest = sqrt(sum);
  return out;
}

/// A copy of `x` (rows, heads · size) whose rows have length 1 in each of its
/// `heads` heads; zero stays zero.
template <class T>
Matrix<T> unit_rows(MatrixView<const T> x, Index heads) {
  Matrix<T> out = Matrix<T>::copy(x);
  const auto size = static_cast<std::size_t>(x.columns / heads);
  for (Index i = 0; i < x.rows; ++i) {
    for (std::size_t at = 0; at < static_cast<std::size_t>(x.columns); at += size) {
      const std::span<T> row = out.view().row_span(i).subspan(at, size);
      const RowLength<T> length = row_length<T>(row);
      if (length.largest == 0) continue;
      for (T& element : row) element = element / static_cast<T>(length.largest) / length.rest;
    }
  }
  return out;
}

/// `d_x` += the gradient by `x` where `d_unit` is that by u = unit_rows(x, heads): (d − u (u·d)) /
/// ‖x‖ in each of `heads` heads, and 0 for zero vectors.
template <class T>
void unit_rows_backward(MatrixView<const T> x, Index heads, MatrixView<const T> d_unit,
                        MatrixView<T> d_x) {
  const Index size = x.columns / heads;
  const Matrix<T> unit = unit_rows(x, heads);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index at = 0; at < x.columns; at += size) {
      const auto row =
          x.row_span(i).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
      const RowLength<T> length = row_length<T>(row);
      if (length.largest == 0) continue;
      T along{};
      for (Index e = at; e < at + size; ++e) along += unit.view().at(i, e) * d_unit.at(i, e);
      for (Index e = at; e < at + size; ++e) {
        const T across = d_unit.at(i, e) - unit.view().at(i, e) * along;
        d_x.at(i, e) += across / length.rest / static_cast<T>(length.largest);
      }
    }
  }
}

/// Whether `normalizer` wants queries of length 1.
inline bool unit_queries(const AttentionNormalizer& normalizer) {
  return normalizer.unit_length() == UnitLength::kQueries ||
         normalizer.unit_length() == UnitLength::kBoth;
}
/// Whether `normalizer` wants keys of length 1.
inline bool unit_keys(const AttentionNormalizer& normalizer) {
  return normalizer.unit_length() == UnitLength::kKeys ||
         normalizer.unit_length() == UnitLength::kBoth;
}

/// What multiplies q·k in `problem`: its scale, or 1 if the normalizer does not scale; 0 stays 0.
template <class T>
double product_scale(const AttentionProblem<T>& problem) {
  // With a scale of 0 the position terms are the whole score.
  return problem.normalizer->scaled() || problem.scale == 0 ? problem.scale : 1;
}

/// A problem whose products are taken as they are: copies of the operands that must have length 1,
/// and the scale that its normalizer has. Position terms see these operands, too. Borrows the rest.
template <class T>
class OperandProblem {
 public:
  /// Copies the operands of `problem` that must have length 1.
  explicit OperandProblem(const AttentionProblem<T>& problem) : problem_(problem) {
    problem_.scale = product_scale(problem);
    if (unit_queries(*problem.normalizer)) {
      query_ = unit_rows(problem.query, problem.num_heads);
      problem_.query = query_.view();
    }
    if (unit_keys(*problem.normalizer)) {
      key_ = unit_rows(problem.key, problem.num_key_value_heads);
      problem_.key = key_.view();
    }
  }
  OperandProblem(const OperandProblem&) = delete;
  OperandProblem& operator=(const OperandProblem&) = delete;

  const AttentionProblem<T>& get() const { return problem_; }  ///< borrows from this object

 private:
  AttentionProblem<T> problem_;
  Matrix<T> query_;
  Matrix<T> key_;
};

/// Gradients by the operands of an OperandProblem, on their way to those of the problem under it.
template <class T>
struct OperandGradients {
  Matrix<T> query;  ///< by the queries; (T, heads · head size)
  Matrix<T> key;    ///< by the keys; (S, key heads · head size)

  /// Zeros of the shapes of `problem`.
  explicit OperandGradients(const AttentionProblem<T>& problem)
      : query(Matrix<T>::zero(problem.query.rows, problem.query.columns)),
        key(Matrix<T>::zero(problem.key.rows, problem.key.columns)) {}

  /// Adds them to `d_query` and `d_key`, gradients by the queries and keys of `problem`; a view
  /// without data is left out.
  void add_to(const AttentionProblem<T>& problem, MatrixView<T> d_query,
              MatrixView<T> d_key) const {
    add(problem.query, problem.num_heads, unit_queries(*problem.normalizer), query.view(), d_query);
    add(problem.key, problem.num_key_value_heads, unit_keys(*problem.normalizer), key.view(),
        d_key);
  }

 private:
  static void add(MatrixView<const T> x, Index heads, bool unit, MatrixView<const T> d,
                  MatrixView<T> d_x) {
    if (d_x.data == nullptr) return;
    if (unit) return unit_rows_backward(x, heads, d, d_x);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index e = 0; e < x.columns; ++e) d_x.at(i, e) += d.at(i, e);
    }
  }
};

}  // namespace masque::nn
