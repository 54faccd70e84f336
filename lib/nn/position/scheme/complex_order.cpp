// complex_order: features 2t and 2t + 1 of a token are the real and imaginary part of r e^{iθ}, its
// amplitude and phase; position k rotates it to r e^{i(ω_t k + θ)}. The paper trains an ω of every
// token and feature; here, as in its reduction that shares frequencies among words, one of every
// feature. The layers after it stay real. An input of zeros stays one.
#include <cmath>
#include <complex>

#include "kernel/rotary.hpp"
#include "nn/position/position_scheme.hpp"

namespace masque::nn {

namespace {

template <class T>
class ComplexOrderTerms final : public PositionTerms<T> {
 public:
  explicit ComplexOrderTerms(const PositionProblem<T>& problem)
      : positions_(problem.positions.keys), d_frequencies_(gradient_of(problem, 0)) {
    const MatrixView<const T> frequencies = problem.parameters[0];
    rotations_.cosine = Matrix<T>(std::ssize(positions_), frequencies.columns);
    rotations_.sine = Matrix<T>(std::ssize(positions_), frequencies.columns);
    for (Index i = 0; i < std::ssize(positions_); ++i) {
      for (Index t = 0; t < frequencies.columns; ++t) {
        const T angle = position(i) * frequencies.at(0, t);
        rotations_.cosine.view().at(i, t) = std::cos(angle);
        rotations_.sine.view().at(i, t) = std::sin(angle);
      }
    }
  }

  void input(MatrixView<T> x) const override {
    kernel::rotary_forward(kernel::RotaryLayout::kAdjacent, rotations_, x.columns, x);
  }
  void input_backward(MatrixView<const T> x, MatrixView<T> d_x) override {
    kernel::rotary_backward(kernel::RotaryLayout::kAdjacent, rotations_, d_x.columns, d_x);
    if (d_frequencies_.data == nullptr) return;
    // Rotated back, the derivative of (a, b) by its angle is (−b, a).
    for (Index i = 0; i < x.rows; ++i) {
      for (Index t = 0; t < d_frequencies_.columns; ++t) {
        d_frequencies_.at(0, t) += position(i) * (d_x.at(i, 2 * t + 1) * x.at(i, 2 * t) -
                                                  d_x.at(i, 2 * t) * x.at(i, 2 * t + 1));
      }
    }
  }

 private:
  T position(Index i) const {
    return static_cast<T>(static_cast<double>(positions_[static_cast<std::size_t>(i)]));
  }

  std::span<const Index> positions_;
  MatrixView<T> d_frequencies_;
  kernel::RotaryTable<T> rotations_;
};

class ComplexOrder final : public PositionSchemeOf<ComplexOrder> {
 public:
  PositionFacts facts() const override {
    PositionFacts facts;
    facts.input = true;
    facts.relative = false;
    return facts;
  }
  VariantInfo info() const override {
    return describe_position("frequencies (hidden_size / 2)", "2 n d",
                             "Wang et al. 2020, arXiv:1912.12333");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    return {{"frequencies", 1, shape.hidden_size / 2, 0, 0,
             kernel::rotary_frequencies(10000, shape.hidden_size / 2 * 2)}};
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    require_even(name(), "hidden_size", problem.shape.hidden_size);
    return std::make_unique<ComplexOrderTerms<T>>(problem);
  }
};

const PositionRegistration kRegistration("complex_order",
                                         [](NamedArguments&) -> std::unique_ptr<PositionScheme> {
                                           return std::make_unique<ComplexOrder>();
                                         });

}  // namespace

}  // namespace masque::nn
