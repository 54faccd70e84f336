// MLP-Mixer's token mixing: yᵀ = W₂ gelu(W₁ LN(x)ᵀ + b₁) + b₂ over tokens, the same for all
// channels. Its hidden units see all tokens: no mask but the full one can be obeyed.
#include "nn/mixer/mixer_of.hpp"
#include "nn/mixer/parts.hpp"

namespace masque::nn {
namespace {

using kernel::Activation;

class MlpMixer final : public MixerOf<MlpMixer> {
 public:
  static MixerInfo describe() {
    return {"mlp_mixer",
            "norm weight and bias d; W1 inner × n, b1 inner, W2 n × inner, b2 n; inner = 2 n",
            MaskSupport::kFull,
            false,
            "the leading columns of W1 and rows of W2",
            "2 n d inner",
            "Tolstikhin 2021, arXiv:2105.01601",
            {&MixerShape::inner_size}};
  }

  void declare(const MixerShape& shape, std::vector<MixerParameter>& out) const {
    const Index n = shape.tokens;
    const Index inner = shape.inner_size > 0 ? shape.inner_size : Index{2} * n;
    out.push_back(mixing::constant_parameter("norm.weight", 1, shape.hidden_size, 1));
    out.push_back(mixing::constant_parameter("norm.bias", 1, shape.hidden_size, 0));
    out.push_back(mixing::weight_parameter("token1.weight", inner, n));
    out.push_back(mixing::constant_parameter("token1.bias", 1, inner, 0));
    out.push_back(mixing::weight_parameter("token2.weight", n, inner));
    out.push_back(mixing::constant_parameter("token2.bias", 1, n, 0));
  }

  template <class T>
  void mix(const MixerProblem<T>& problem, MatrixView<T> y) const {
    const auto p = problem.parameters;
    const Matrix<T> across = transposed_norm(problem);
    Matrix<T> hidden = hidden_units(problem, across);
    kernel::activation_forward(Activation::kGelu, hidden.view());
    Matrix<T> out = mixing::project(std::as_const(hidden).view(), p[4].middle_rows(0, y.rows));
    mixing::add_to_rows(p[5].middle_columns(0, y.rows), out.view());
    for (Index i = 0; i < y.rows; ++i) {
      for (Index c = 0; c < y.columns; ++c) y.at(i, c) = out.view().at(c, i);
    }
  }

  template <class T>
  void mix_backward(const MixerProblem<T>& problem, MatrixView<const T> d_y,
                    const MixerGradients<T>& gradients) const {
    const auto p = problem.parameters;
    const auto d = gradients.parameters;
    const Index tokens = d_y.rows;
    const Matrix<T> across = transposed_norm(problem);
    const Matrix<T> before = hidden_units(problem, across);
    const Matrix<T> hidden = mixing::activated<T>(Activation::kGelu, before.view());
    const Matrix<T> d_out = mixing::transposed(d_y);
    mixing::add_row_sums(d_out.view(), d[5].middle_columns(0, tokens));
    Matrix<T> d_hidden = Matrix<T>::zero(hidden.rows(), hidden.columns());
    kernel::matmul_backward<T>(hidden.view(), p[4].middle_rows(0, tokens), d_out.view(),
                               d_hidden.view(), d[4].middle_rows(0, tokens));
    const Matrix<T> d_before = mixing::activated_backward<T>(Activation::kGelu, before.view(),
                                                             std::as_const(d_hidden).view());
    mixing::add_row_sums(d_before.view(), d[3]);
    Matrix<T> d_across = Matrix<T>::zero(across.rows(), across.columns());
    kernel::matmul_backward<T>(across.view(), p[2].middle_columns(0, tokens), d_before.view(),
                               d_across.view(), d[2].middle_columns(0, tokens));
    const Matrix<T> d_norm = mixing::transposed(std::as_const(d_across).view());
    mixing::layer_norm_backward<T>(problem.x, p[0], d_norm.view(), gradients.x, d[0], d[1]);
  }

 private:
  /// LN(x)ᵀ (d, T).
  template <class T>
  static Matrix<T> transposed_norm(const MixerProblem<T>& problem) {
    const Matrix<T> norm =
        mixing::layer_norm(problem.x, problem.parameters[0], problem.parameters[1]);
    return mixing::transposed(norm.view());
  }

  /// Before the activation (d, inner).
  template <class T>
  static Matrix<T> hidden_units(const MixerProblem<T>& problem, const Matrix<T>& across) {
    Matrix<T> out =
        mixing::project(across.view(), problem.parameters[2].middle_columns(0, problem.x.rows));
    mixing::add_to_rows(problem.parameters[3], out.view());
    return out;
  }
};

const MixerRegistration kRegistration(std::make_unique<MlpMixer>());

}  // namespace
}  // namespace masque::nn
