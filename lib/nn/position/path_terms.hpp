// Positions as a path of vectors that starts at a trained one and goes on row by row, added to the
// input. Every position is reached from 0, so cost and memory grow with the largest position.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>

#include "nn/position/position_scheme.hpp"

namespace masque::nn {

/// The path up to the largest position. A derived class fills `rows_` from row 1 on in its
/// constructor; row 0 is the first parameter.
template <class T>
class PathTerms : public PositionTerms<T> {
 public:
  void input(MatrixView<T> x) const override {
    for (Index i = 0; i < x.rows; ++i) {
      const T* row = rows_.view().row(row_of(i));
      for (Index d = 0; d < x.columns; ++d) x.at(i, d) += row[d];
    }
  }

  void input_backward(MatrixView<const T> /*x*/, MatrixView<T> d_x) override {
    Matrix<T> d_rows = Matrix<T>::zero(rows_.rows(), rows_.columns());
    for (Index i = 0; i < d_x.rows; ++i) {
      T* row = d_rows.view().row(row_of(i));
      for (Index d = 0; d < d_x.columns; ++d) row[d] += d_x.at(i, d);
    }
    for (Index k = rows_.rows() - 2; k >= 0; --k) step_backward(k, d_rows.view());
    if (d_first_.data == nullptr) return;
    for (Index d = 0; d < rows_.columns(); ++d) d_first_.at(0, d) += d_rows.view().at(0, d);
  }

 protected:
  /// The path to the largest of the key positions of `problem`, with `steps` rows from one position
  /// to the next; row 0 is set. Throws as check_path() for `scheme`.
  PathTerms(std::string_view scheme, Index steps, const PositionProblem<T>& problem)
      : steps_(steps), positions_(problem.positions.keys), d_first_(gradient_of(problem, 0)) {
    Index last = 0;
    for (const Index position : positions_) last = std::max(last, position);
    const Index size = problem.shape.hidden_size;
    check_path(scheme, last, steps, size);
    rows_ = Matrix<T>(last * steps + 1, size);
    std::copy_n(problem.parameters[0].row(0), size, rows_.view().row(0));
  }

  /// From the gradient by row `k` + 1 in `d_rows` (rows, hidden_size), adds to that by row k, and
  /// to those of the parameters.
  virtual void step_backward(Index k, MatrixView<T> d_rows) = 0;

  Matrix<T> rows_;  ///< (last position · steps + 1, hidden_size)

 private:
  Index row_of(Index i) const {
    return std::max<Index>(positions_[static_cast<std::size_t>(i)], 0) * steps_;
  }

  Index steps_;
  std::span<const Index> positions_;
  MatrixView<T> d_first_;
};

/// The facts of such a scheme: it changes the input and is not relative.
inline PositionFacts path_facts() {
  PositionFacts facts;
  facts.input = true;
  facts.relative = false;
  return facts;
}

}  // namespace masque::nn
