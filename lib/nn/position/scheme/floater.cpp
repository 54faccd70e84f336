// floater: positions as a path p(t) that an ordinary differential equation moves along, added to
// the input: dp/dt = h(t, p), p(0) trained, position i at t = i · step. h is a network of one
// hidden layer that also reads the time,
//     h(t, p) = tanh(p A + t a + b) B + c
// and the equation is solved by the classical Runge–Kutta rule of fourth order, `substeps` of its
// steps from one position to the next; gradients are those of what it computes. Every position is
// reached from 0, so cost and memory grow with the largest position. Liu et al. 2020,
// arXiv:2003.09229, equations 3 and 4, in front of the first layer.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <utility>

#include "base/string/named_arguments.hpp"
#include "nn/position/path_terms.hpp"
#include "nn/position/plain_products.hpp"

namespace masque::nn {

namespace {

/// h at one point, and what its backward pass reads.
template <class T>
struct Slope {
  std::vector<T> point;   ///< p
  std::vector<T> hidden;  ///< tanh(p A + t a + b)
  std::vector<T> value;   ///< h
  T time{};
};

template <class T>
class FloaterTerms final : public PathTerms<T> {
 public:
  FloaterTerms(double step, Index substeps, const PositionProblem<T>& problem)
      : PathTerms<T>("floater", substeps, problem),
        step_(static_cast<T>(step / static_cast<double>(substeps))),
        parameters_(problem.parameters.begin(), problem.parameters.end()) {
    for (std::size_t k = 0; k < parameters_.size(); ++k)
      gradients_.push_back(gradient_of(problem, k));
    const Index size = rows_.columns();
    for (Index k = 0; k + 1 < rows_.rows(); ++k) {
      const std::array<Slope<T>, 4> slopes = slopes_at(k);
      for (Index d = 0; d < size; ++d) {
        T sum{};
        for (std::size_t s = 0; s < 4; ++s) sum += weight(s) * slopes[s].value[at(d)];
        rows_.view().at(k + 1, d) = rows_.view().at(k, d) + step_ * sum;
      }
    }
  }

 private:
  using PathTerms<T>::rows_;  // p after each step

  // Places of the parameters, after the first row.
  static constexpr std::size_t kIn = 1;       ///< A (size, inner)
  static constexpr std::size_t kTime = 2;     ///< a
  static constexpr std::size_t kInBias = 3;   ///< b
  static constexpr std::size_t kOut = 4;      ///< B (inner, size)
  static constexpr std::size_t kOutBias = 5;  ///< c

  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  /// Of the four slopes of a step.
  static T weight(std::size_t slope) {
    return static_cast<T>(slope == 0 || slope == 3 ? 1.0 / 6 : 1.0 / 3);
  }
  /// How far slope s goes along the one before it, and in time, in steps.
  static T reach(std::size_t slope) {
    return static_cast<T>(slope == 0 ? 0.0 : slope == 3 ? 1.0 : 0.5);
  }

  Slope<T> slope_at(T time, std::vector<T> point) const {
    const Index size = rows_.columns();
    const Index inner = parameters_[kIn].columns;
    Slope<T> out{std::move(point), std::vector<T>(at(inner)), std::vector<T>(at(size)), time};
    for (Index e = 0; e < inner; ++e)
      out.hidden[at(e)] = time * parameters_[kTime].at(0, e) + parameters_[kInBias].at(0, e);
    add_row_product(out.point.data(), parameters_[kIn], out.hidden.data());
    for (T& hidden : out.hidden) hidden = std::tanh(hidden);
    std::copy_n(parameters_[kOutBias].row(0), size, out.value.data());
    add_row_product(out.hidden.data(), parameters_[kOut], out.value.data());
    return out;
  }

  /// The four slopes of the step from row k.
  std::array<Slope<T>, 4> slopes_at(Index k) const {
    const T time = step_ * static_cast<T>(static_cast<double>(k));
    std::array<Slope<T>, 4> slopes;
    for (std::size_t s = 0; s < 4; ++s) {
      std::vector<T> point(rows_.view().row(k), rows_.view().row(k) + rows_.columns());
      for (std::size_t d = 0; s > 0 && d < point.size(); ++d)
        point[d] += step_ * reach(s) * slopes[s - 1].value[d];
      slopes[s] = slope_at(time + step_ * reach(s), std::move(point));
    }
    return slopes;
  }

  /// From the gradient by h to that by its point.
  std::vector<T> slope_backward(const Slope<T>& slope, const std::vector<T>& d_value) {
    std::vector<T> d_sum(slope.hidden.size(), T{});
    add_row_product(d_value.data(), std::as_const(out_transposed_).view(), d_sum.data());
    for (std::size_t e = 0; e < d_sum.size(); ++e)
      d_sum[e] *= T{1} - slope.hidden[e] * slope.hidden[e];
    const T one{1};
    add_outer_product(&one, d_value.data(), gradients_[kOutBias]);
    add_outer_product(slope.hidden.data(), d_value.data(), gradients_[kOut]);
    add_outer_product(&slope.time, d_sum.data(), gradients_[kTime]);
    add_outer_product(&one, d_sum.data(), gradients_[kInBias]);
    add_outer_product(slope.point.data(), d_sum.data(), gradients_[kIn]);
    std::vector<T> d_point(slope.point.size(), T{});
    add_row_product(d_sum.data(), std::as_const(in_transposed_).view(), d_point.data());
    return d_point;
  }

  void step_backward(Index k, MatrixView<T> d_rows) override {
    if (in_transposed_.rows() == 0) {
      in_transposed_ = transposed_of(parameters_[kIn]);
      out_transposed_ = transposed_of(parameters_[kOut]);
    }
    const std::array<Slope<T>, 4> slopes = slopes_at(k);
    const auto size = at(d_rows.columns);
    std::array<std::vector<T>, 4> d_values;
    for (std::size_t s = 0; s < 4; ++s) {
      d_values[s].resize(size);
      for (std::size_t d = 0; d < size; ++d)
        d_values[s][d] = step_ * weight(s) * d_rows.row(k + 1)[d];
    }
    for (std::size_t d = 0; d < size; ++d) d_rows.row(k)[d] += d_rows.row(k + 1)[d];
    for (std::size_t s = 4; s-- > 0;) {
      const std::vector<T> d_point = slope_backward(slopes[s], d_values[s]);
      for (std::size_t d = 0; d < size; ++d) {
        d_rows.row(k)[d] += d_point[d];
        if (s > 0) d_values[s - 1][d] += step_ * reach(s) * d_point[d];
      }
    }
  }

  T step_;
  std::vector<MatrixView<const T>> parameters_;
  std::vector<MatrixView<T>> gradients_;
  Matrix<T> in_transposed_, out_transposed_;  // Aᵀ and Bᵀ, for the backward pass
};

class Floater final : public PositionSchemeOf<Floater> {
 public:
  Floater(double step, Index substeps, Index inner)
      : step_(step), substeps_(substeps), inner_(inner) {}

  PositionFacts facts() const override { return path_facts(); }
  VariantInfo info() const override {
    return describe_position(
        "first (hidden_size), in (hidden_size, inner), time, in_bias (inner), out (inner, "
        "hidden_size), out_bias (hidden_size)",
        "8 n substeps d inner", "Liu et al. 2020, arXiv:2003.09229");
  }
  std::vector<PositionParameter> parameters(const PositionShape& shape) const override {
    const Index size = shape.hidden_size;
    const Index inner = inner_ > 0 ? inner_ : size;
    const auto fan_in = [](Index inputs) { return 1 / std::sqrt(static_cast<double>(inputs)); };
    return {{"first", 1, size, 0, 0.02, {}},
            {"in", size, inner, 0, fan_in(size), {}},
            {"time", 1, inner, 0, 0.02, {}},
            {"in_bias", 1, inner, 0, 0.02, {}},
            {"out", inner, size, 0, fan_in(inner), {}},
            {"out_bias", 1, size, 0, 0.02, {}}};
  }
  template <class T>
  std::unique_ptr<PositionTerms<T>> make(const PositionProblem<T>& problem) const {
    return std::make_unique<FloaterTerms<T>>(step_, substeps_, problem);
  }

 private:
  double step_;
  Index substeps_;
  Index inner_;
};

const PositionRegistration kRegistration(
    "floater", [](NamedArguments& arguments) -> std::unique_ptr<PositionScheme> {
      const double step = arguments.number("step", 0.1, 1e-6, 10);
      const Index substeps = arguments.count("substeps", 1, 1, 1000);
      // 0: as wide as the input.
      const Index inner = arguments.count("inner", 0, 0, 1 << 16);
      return std::make_unique<Floater>(step, substeps, inner);
    });

}  // namespace

}  // namespace masque::nn
