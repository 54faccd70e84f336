// External attention: y = A M_v, where A compares tokens with S memories M_k instead of with
// tokens. Guo et al. 2021, arXiv:2105.02358.
#include <vector>

#include "kernel/number/scalar.hpp"
#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn::mixing {

namespace {

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

}  // namespace

}  // namespace masque::nn::mixing

namespace masque::nn {

namespace {

/// With the paper's double normalization: softmax over tokens, then every row divided by its sum.
/// With Z_j = Σ_i e^{s_ij} this is a softmax over memories of s_ij − log Z_j, and Z_j is all that a
/// token learns of the others.
class External final : public mixing::ExternalAttention<External> {
 public:
  static MixerInfo describe() {
    return {"external_attention",
            "memories of keys and values inner × d; inner = 64",
            MaskSupport::kFull,
            true,
            "any length",
            "2 n d inner",
            "Guo 2021, arXiv:2105.02358",
            {&MixerShape::inner_size}};
  }

  template <class T>
  static void normalize(MatrixView<T> a) {
    const Matrix<T> logs = column_logs<T>(a);
    for (Index i = 0; i < a.rows; ++i) {
      for (Index j = 0; j < a.columns; ++j) a.at(i, j) -= logs.view().at(0, j);
    }
    mixing::masked_softmax(nullptr, a);
  }

  template <class T>
  static Matrix<T> normalize_backward(MatrixView<const T> scores, MatrixView<const T> a,
                                      MatrixView<const T> d_a) {
    Matrix<T> d_scores = mixing::softmax_backward(a, d_a);
    const Matrix<T> logs = column_logs(scores);
    for (Index j = 0; j < scores.columns; ++j) {
      T d_log{};
      for (Index i = 0; i < scores.rows; ++i) d_log -= d_scores.view().at(i, j);
      for (Index i = 0; i < scores.rows; ++i) {
        d_scores.view().at(i, j) += d_log * std::exp(scores.at(i, j) - logs.view().at(0, j));
      }
    }
    return d_scores;
  }

 private:
  /// log Z_j (1, S).
  template <class T>
  static Matrix<T> column_logs(MatrixView<const T> scores) {
    Matrix<T> out(1, scores.columns);
    for (Index j = 0; j < scores.columns; ++j) {
      double largest = -HUGE_VAL;
      for (Index i = 0; i < scores.rows; ++i) {
        largest = std::max(largest, kernel::reference::real_part(scores.at(i, j)));
      }
      T sum{};
      for (Index i = 0; i < scores.rows; ++i) {
        sum += std::exp(scores.at(i, j) - static_cast<T>(largest));
      }
      out.view().at(0, j) = static_cast<T>(largest) + std::log(sum);
    }
    return out;
  }
};

/// With a softmax over memories alone: a feed-forward layer in which no token learns anything of
/// another. What a mixer must beat.
class ExternalSoftmax final : public mixing::ExternalAttention<ExternalSoftmax> {
 public:
  static MixerInfo describe() {
    return {"external_attention_softmax",
            "memories of keys and values inner × d; inner = 64",
            MaskSupport::kFull,
            true,
            "any length",
            "2 n d inner",
            "Guo 2021, arXiv:2105.02358, equation 5",
            {&MixerShape::inner_size}};
  }

  template <class T>
  static void normalize(MatrixView<T> a) {
    mixing::masked_softmax(nullptr, a);
  }

  template <class T>
  static Matrix<T> normalize_backward(MatrixView<const T> /*scores*/, MatrixView<const T> a,
                                      MatrixView<const T> d_a) {
    return mixing::softmax_backward(a, d_a);
  }
};

const MixerRegistration kRegistrations[] = {
    MixerRegistration(std::make_unique<External>()),
    MixerRegistration(std::make_unique<ExternalSoftmax>()),
};

}  // namespace

}  // namespace masque::nn
