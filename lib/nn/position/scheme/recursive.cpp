// recursive: p_{k+1} = p_k + step · tanh(p_k A + b), added to the input; p_0, A and b are trained.
// A small map that stands for FLOATER's: one Euler step of dp/dt = h(p) with h = tanh(p A + b).
// Every position is reached from 0, so cost and memory grow with the largest position.
#include <algorithm>
#include <cmath>
#include <complex>
#include <utility>

#include "base/string/named_arguments.hpp"
#include "nn/position/path_terms.hpp"
#include "nn/position/plain_products.hpp"

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
      T* slopes = slopes_.view().row(k);
      std::copy_n(problem.parameters[2].row(0), size, slopes);
      add_row_product(from, map_, slopes);
      for (Index e = 0; e < size; ++e) {
        slopes[e] = std::tanh(slopes[e]);
        rows_.view().at(k + 1, e) = from[e] + step_ * slopes[e];
      }
    }
  }

 private:
  using PathTerms<T>::rows_;  // p_k

  void step_backward(Index k, MatrixView<T> d_rows) override {
    if (transposed_.rows() == 0) transposed_ = transposed_of(map_);
    const T* from = std::as_const(rows_).view().row(k);
    std::vector<T> d_sum(static_cast<std::size_t>(d_rows.columns));
    for (Index e = 0; e < d_rows.columns; ++e) {
      d_rows.at(k, e) += d_rows.at(k + 1, e);
      const T slope = slopes_.view().at(k, e);
      d_sum[static_cast<std::size_t>(e)] = step_ * d_rows.at(k + 1, e) * (T{1} - slope * slope);
    }
    const T one{1};
    add_outer_product(&one, d_sum.data(), d_bias_);
    add_outer_product(from, d_sum.data(), d_map_);
    add_row_product(d_sum.data(), std::as_const(transposed_).view(), d_rows.row(k));
  }

  T step_;
  MatrixView<const T> map_;
  MatrixView<T> d_map_, d_bias_;
  Matrix<T> slopes_;      // tanh(p_k A + b)
  Matrix<T> transposed_;  // Aᵀ, for the backward pass
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
