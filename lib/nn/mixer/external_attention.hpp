// External attention: y = A M_v, where A compares tokens with S memories M_k instead of with
// tokens. Guo et al. 2021, arXiv:2105.02358.
#pragma once

#include <vector>

#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn::mixing {

/// External attention. Derived has
///
///     template <class T>  // from scores (T, S), in place
///     static void normalize(MatrixView<T> a);
///     template <class T>  // from gradients of A to those of the scores
///     static Matrix<T> normalize_backward(MatrixView<const T> scores, MatrixView<const T> a,
///                                         MatrixView<const T> d_a);
template <class Derived>
class ExternalAttention : public MixerOf<Derived> {
 public:
  /// Adds the parameters for `shape` to `out`: S is inner_size, or 64 if that is 0.
  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    const Index memories = shape.inner_size > 0 ? shape.inner_size : 64;
    const Index d = shape.hidden_size;
    out.push_back(weight_parameter("memory_key.weight", memories, d));
    out.push_back(
        {"memory_value.weight", memories, d, 0, 1 / std::sqrt(static_cast<double>(memories))});
  }

  /// Sets `y` (T, d) to the mixing of `problem`: see MixerOf.
  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    Matrix<T> a = project(problem.x, problem.parameters[0]);
    Derived::normalize(a.view());
    kernel::matmul_plain<T>(a.view(), problem.parameters[1], y);
  }

  /// From `d_y`, the gradient by y, adds to all `gradients` of `problem`: see MixerOf.
  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    const Matrix<T> scores = project(problem.x, problem.parameters[0]);
    Matrix<T> a = Matrix<T>::copy(scores.view());
    Derived::normalize(a.view());
    const Matrix<T> d_a = project(d_y, problem.parameters[1]);
    add_transposed_product<T>(a.view(), d_y, gradients.parameters[1]);
    const Matrix<T> d_scores =
        Derived::template normalize_backward<T>(scores.view(), std::as_const(a).view(), d_a.view());
    kernel::matmul_backward<T>(problem.x, problem.parameters[0], d_scores.view(), gradients.x,
                               gradients.parameters[0]);
  }
};

}  // namespace masque::nn::mixing
