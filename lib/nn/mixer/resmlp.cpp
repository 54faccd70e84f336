// ResMLP's mixing: y = γ ⊙ (W (α ⊙ x + β) + b), α, β, γ over channels, b over tokens.
#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn {
namespace {

class ResMlp final : public MixerOf<ResMlp> {
 public:
  static MixerInfo describe() {
    return {"resmlp",
            "affine weight and bias d; token W n × n, b n; scale d",
            MaskSupport::kAny,
            false,
            "the leading rows and columns of W",
            "n² d",
            "Touvron 2021, arXiv:2105.03404"};
  }

  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    const Index n = shape.tokens;
    const Index d = shape.hidden_size;
    out.push_back(mixing::constant_parameter("affine.weight", 1, d, 1));
    out.push_back(mixing::constant_parameter("affine.bias", 1, d, 0));
    out.push_back(mixing::weight_parameter("token.weight", n, n));
    out.push_back(mixing::constant_parameter("token.bias", 1, n, 0));
    out.push_back(mixing::constant_parameter("scale.weight", 1, d, 0.1));
  }

  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    const Matrix<T> mixed = mixed_tokens(problem);
    for (Index i = 0; i < y.rows; ++i) {
      for (Index c = 0; c < y.columns; ++c) {
        y.at(i, c) = problem.parameters[4].at(0, c) * mixed.view().at(i, c);
      }
    }
  }

  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    const auto p = problem.parameters;
    const auto d = gradients.parameters;
    const MatrixView<const T> x = problem.x;
    const Matrix<T> mixed = mixed_tokens(problem);
    Matrix<T> d_mixed(x.rows, x.columns);
    for (Index i = 0; i < x.rows; ++i) {
      for (Index c = 0; c < x.columns; ++c) {
        const T g = d_y.at(i, c);
        d[4].at(0, c) += g * mixed.view().at(i, c);
        d_mixed.view().at(i, c) = g * p[4].at(0, c);
        d[3].at(0, i) += d_mixed.view().at(i, c);
      }
    }
    const Matrix<T> w = mixing::static_matrix(problem, p[2]);
    const Matrix<T> affine = affine_tokens(problem);
    Matrix<T> d_w = mixing::project(std::as_const(d_mixed).view(), affine.view());
    mixing::static_matrix_backward(problem, d_w.view(), d[2]);
    Matrix<T> d_affine = Matrix<T>::zero(x.rows, x.columns);
    mixing::add_transposed_product<T>(w.view(), d_mixed.view(), d_affine.view());
    for (Index i = 0; i < x.rows; ++i) {
      for (Index c = 0; c < x.columns; ++c) {
        const T g = d_affine.view().at(i, c);
        gradients.x.at(i, c) += g * p[0].at(0, c);
        d[0].at(0, c) += g * x.at(i, c);
        d[1].at(0, c) += g;
      }
    }
  }

 private:
  template <class T>
  static Matrix<T> affine_tokens(const MixerProblem<T>& problem) {
    Matrix<T> out(problem.x.rows, problem.x.columns);
    for (Index i = 0; i < out.rows(); ++i) {
      for (Index c = 0; c < out.columns(); ++c) {
        out.view().at(i, c) =
            problem.parameters[0].at(0, c) * problem.x.at(i, c) + problem.parameters[1].at(0, c);
      }
    }
    return out;
  }

  /// W (α ⊙ x + β) + b
  template <class T>
  static Matrix<T> mixed_tokens(const MixerProblem<T>& problem) {
    const Matrix<T> w = mixing::static_matrix(problem, problem.parameters[2]);
    const Matrix<T> affine = affine_tokens(problem);
    Matrix<T> out = mixing::product(w.view(), affine.view());
    for (Index i = 0; i < out.rows(); ++i) {
      for (T& element : out.view().row_span(i)) element += problem.parameters[3].at(0, i);
    }
    return out;
  }
};

const MixerRegistration kRegistration(std::make_unique<ResMlp>());

}  // namespace
}  // namespace masque::nn
