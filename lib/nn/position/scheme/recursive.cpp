// recursive: p_{k+1} = p_k + step · tanh(p_k A + b), added to the input; p_0, A and b are trained.
// A small map that stands for FLOATER's: one Euler step of dp/dt = h(p) with h = tanh(p A + b).
// Every position is reached from 0, so cost and memory grow with the largest position.
#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "base/named_arguments.hpp"
#include "nn/position/path_terms.hpp"

namespace masque::nn {

namespace {

template <class T>
class RecursiveTerms final : public PathTerms<T> {
 public:
  RecursiveTerms(double step, const PositionProblem<T>& problem)
      : PathTerms<T>("recursive", 1, problem),
        step_(static_cast<T>(step)),
        map_(problem.parameters[1]),
        d_map_(gradient_of(problem, 1)),
        d_bias_(gradient_of(problem, 2)) {
    const Index size = rows_.columns();
    const Index last = rows_.rows() - 1;
    slopes_ = Matrix<T>(last, size);
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

 private:
  using PathTerms<T>::rows_;  // p_k

  void step_backward(Index k, MatrixView<T> d_rows) override {
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
  MatrixView<const T> map_;
  MatrixView<T> d_map_, d_bias_;
  Matrix<T> slopes_;  // tanh(p_k A + b)
};

class Recursive final : public PositionSchemeOf<Recursive> {
 public:
  explicit Recursive(double step) : step_(step) {}

  PositionFacts facts() const override { return path_facts(); }
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
