// recursive: p_{k+1} = p_k + step · tanh(p_k A + b), added to the input; p_0, A and b are trained.
// A small map that stands for FLOATER's: one Euler step of dp/dt = h(p) with h = tanh(p A + b).
// Every position is reached from 0, so cost and memory grow with the largest position.
#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "base/named_arguments.hpp"
#include "nn/position_scheme.hpp"

namespace masque::nn {

namespace {

template <class T>
class RecursiveTerms final : public PositionTerms<T> {
 public:
  RecursiveTerms(double step, const PositionProblem<T>& problem)
      : step_(static_cast<T>(step)),
        positions_(problem.positions.keys),
        map_(problem.parameters[1]),
        d_first_(gradient_of(problem, 0)),
        d_map_(gradient_of(problem, 1)),
        d_bias_(gradient_of(problem, 2)) {
    const Index size = problem.shape.hidden_size;
    Index last = 0;
    for (const Index position : positions_) last = std::max(last, position);
    check_path("recursive", last, 1, size);
    rows_ = Matrix<T>(last + 1, size);
    slopes_ = Matrix<T>(last, size);
    std::copy_n(problem.parameters[0].row(0), size, rows_.view().row(0));
    for (Index k = 0; k < last; ++k) {
      const T* from = rows_.view().row(k);
      for (Index e = 0; e < size; ++e) {
        T sum = problem.parameters[2].at(0, e);
        for (Index d = 0; d < size; ++d) sum += from[d] * map_.at(d, e);
        slopes_.view().at(k, e) = std::tanh(sum);
        rows_.view().at(k + 1, e) = from[e] + step_ * slopes_.view().at(k, e);
      }
    }
  }

  void input(MatrixView<T> x) const override {
    for (Index i = 0; i < x.rows; ++i) {
      const T* row = rows_.view().row(position(i));
      for (Index d = 0; d < x.columns; ++d) x.at(i, d) += row[d];
    }
  }

  void input_backward(MatrixView<const T> /*x*/, MatrixView<T> d_x) override {
    const Index size = rows_.columns();
    Matrix<T> d_rows = Matrix<T>::zero(rows_.rows(), size);
    for (Index i = 0; i < d_x.rows; ++i) {
      T* row = d_rows.view().row(position(i));
      for (Index d = 0; d < size; ++d) row[d] += d_x.at(i, d);
    }
    for (Index k = rows_.rows() - 2; k >= 0; --k) step_backward(k, d_rows.view());
    if (d_first_.data == nullptr) return;
    for (Index d = 0; d < size; ++d) d_first_.at(0, d) += d_rows.view().at(0, d);
  }

 private:
  Index position(Index i) const {
    return std::max<Index>(positions_[static_cast<std::size_t>(i)], 0);
  }

  /// From the gradient by row k + 1 to that by row k.
  void step_backward(Index k, MatrixView<T> d_rows) {
    const T* from = std::as_const(rows_).view().row(k);
    for (Index d = 0; d < d_rows.columns; ++d) d_rows.at(k, d) += d_rows.at(k + 1, d);
    for (Index e = 0; e < d_rows.columns; ++e) {
      const T slope = slopes_.view().at(k, e);
      const T d_sum = step_ * d_rows.at(k + 1, e) * (T{1} - slope * slope);
      if (d_bias_.data != nullptr) d_bias_.at(0, e) += d_sum;
      for (Index d = 0; d < d_rows.columns; ++d) {
        d_rows.at(k, d) += d_sum * map_.at(d, e);
        if (d_map_.data != nullptr) d_map_.at(d, e) += d_sum * from[d];
      }
    }
  }

  T step_;
  std::span<const Index> positions_;
  MatrixView<const T> map_;
  MatrixView<T> d_first_, d_map_, d_bias_;
  Matrix<T> rows_;    // p_k
  Matrix<T> slopes_;  // tanh(p_k A + b)
};

class Recursive final : public PositionSchemeOf<Recursive> {
 public:
  explicit Recursive(double step) : step_(step) {}

  PositionFacts facts() const override {
    PositionFacts facts;
    facts.input = true;
    facts.relative = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position(
        "first (hidden_size), map (hidden_size, hidden_size), bias (hidden_size)", "n d²",
        "after Liu et al. 2020, arXiv:2003.09229 (FLOATER)");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    const Index size = shape.hidden_size;
    return {{"first", 1, size, 0, 0.02, {}},
            {"map", size, size, 0, 1 / std::sqrt(static_cast<double>(size)), {}},
            {"bias", 1, size, 0, 0.02, {}}};
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<RecursiveTerms<T>>(step_, problem);
  }

 private:
  double step_;
};

const PositionRegistration kRegistration(
    "recursive", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      return std::make_unique<Recursive>(arguments.number("step", 0.1, 1e-6, 10));
    });

}  // namespace

}  // namespace masque::nn
