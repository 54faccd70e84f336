// The part of a mixer that is the same for all: one template method for every number type.
#pragma once

#include <utility>
#include <vector>

#include "base/error.hpp"
#include "nn/mixer/mixer.hpp"

namespace masque::nn {

/// A mixer whose class has
///
///     static MixerInfo describe();
///     void declare(const MixerShape&, std::vector<MixerParameter>&) const;
///     template <class T> void mix(const MixerProblem<T>&, MatrixView<T> y) const;
///     template <class T> void mix_backward(const MixerProblem<T>&, MatrixView<const T> d_y,
///                                          const MixerGradients<T>&) const;
///
/// `declare` adds the parameters of a shape that check_shape() has passed. Shapes and mask are
/// checked before `mix` and `mix_backward` are called, T ≥ 1, and every gradient has data.
template <class Derived>
class MixerOf : public Mixer {
 public:
  const MixerInfo& info() const final {
    static const MixerInfo kInfo = Derived::describe();
    return kInfo;
  }

  std::vector<MixerParameter> parameters(const MixerShape& shape) const final {
    check_shape(shape);
    std::vector<MixerParameter> out;
    derived().declare(shape, out);
    return out;
  }

  void forward(const MixerProblem<float>& problem, MatrixView<float> y) const final {
    run(problem, y);
  }
  void forward(const MixerProblem<double>& problem, MatrixView<double> y) const final {
    run(problem, y);
  }
  void forward(const MixerProblem<std::complex<double>>& problem,
               MatrixView<std::complex<double>> y) const final {
    run(problem, y);
  }
  void backward(const MixerProblem<float>& problem, MatrixView<const float> d_y,
                const MixerGradients<float>& gradients) const final {
    run_backward(problem, d_y, gradients);
  }
  void backward(const MixerProblem<double>& problem, MatrixView<const double> d_y,
                const MixerGradients<double>& gradients) const final {
    run_backward(problem, d_y, gradients);
  }

 private:
  const Derived& derived() const { return static_cast<const Derived&>(*this); }

  template <class T>
  void run(const MixerProblem<T>& problem, MatrixView<T> y) const {
    check_problem<T>(*this, problem, y);
    if (!problem.x.empty()) derived().mix(problem, y);
  }

  template <class T>
  void run_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    check_problem<T>(*this, problem, d_y);
    if (problem.x.empty()) return;
    // What the caller leaves out is added to memory that nobody reads.
    std::vector<Matrix<T>> unread;
    unread.reserve(problem.parameters.size() + 1);
    const auto or_unread = [&](MatrixView<T> given, MatrixView<const T> like) {
      if (given.data != nullptr) {
        MASQUE_CHECK(given.rows == like.rows && given.columns == like.columns);
        return given;
      }
      return unread.emplace_back(Matrix<T>::zero(like.rows, like.columns)).view();
    };
    std::vector<MatrixView<T>> to(problem.parameters.size());
    MASQUE_CHECK(gradients.parameters.empty() || gradients.parameters.size() == to.size());
    for (std::size_t k = 0; k < to.size(); ++k) {
      to[k] = or_unread(gradients.parameters.empty() ? MatrixView<T>() : gradients.parameters[k],
                        problem.parameters[k]);
    }
    derived().mix_backward(problem, d_y, MixerGradients<T>{or_unread(gradients.x, problem.x), to});
  }
};

}  // namespace masque::nn
