// B_ij = P_{i, ⌊j / b⌋} Q_{i, j mod b}: two dense synthesizers with a and b outputs, ab ≥ n, each
// repeated to length ab and multiplied. The paper leaves the order of the repetition open; this one
// gives every pair of outputs once.
#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

struct FactorizedDenseScores {
  struct Sizes {
    Index inner;
    Index a;
    Index b;
  };
  static Sizes sizes(const MixerShape& shape) {
    const Index inner =
        shape.inner_size > 0 ? shape.inner_size : shape.hidden_size / shape.num_attention_heads;
    Index a = 1;
    while (a * a < shape.tokens) ++a;
    return {inner, a, (shape.tokens + a - 1) / a};
  }
  static mixing::HeadLayers left(const MixerShape& shape, std::size_t p) {
    return {p, sizes(shape).inner, sizes(shape).a};
  }
  static mixing::HeadLayers right(const MixerShape& shape, std::size_t p) {
    return {p + mixing::HeadLayers::kParameters, sizes(shape).inner, sizes(shape).b};
  }

  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    const auto [inner, a, b] = sizes(shape);
    mixing::HeadLayers::declare("left", shape, inner, a, out);
    mixing::HeadLayers::declare("right", shape, inner, b, out);
  }

  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    const auto [inner, a, b] = sizes(problem.shape);
    const Matrix<T> P = left(problem.shape, p).forward(problem, head, a);
    const Matrix<T> Q = right(problem.shape, p).forward(problem, head, b);
    const Index tokens = problem.x.rows;
    Matrix<T> out(tokens, tokens);
    for (Index i = 0; i < tokens; ++i) {
      for (Index j = 0; j < tokens; ++j) {
        out.view().at(i, j) = P.view().at(i, j / b) * Q.view().at(i, j % b);
      }
    }
    return out;
  }

  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    const auto [inner, a, b] = sizes(problem.shape);
    const Matrix<T> P = left(problem.shape, p).forward(problem, head, a);
    const Matrix<T> Q = right(problem.shape, p).forward(problem, head, b);
    Matrix<T> d_p = Matrix<T>::zero(P.rows(), a);
    Matrix<T> d_q = Matrix<T>::zero(Q.rows(), b);
    for (Index i = 0; i < d_scores.rows; ++i) {
      for (Index j = 0; j < d_scores.columns; ++j) {
        d_p.view().at(i, j / b) += d_scores.at(i, j) * Q.view().at(i, j % b);
        d_q.view().at(i, j % b) += d_scores.at(i, j) * P.view().at(i, j / b);
      }
    }
    left(problem.shape, p).backward(problem, head, std::as_const(d_p).view(), gradients);
    right(problem.shape, p).backward(problem, head, std::as_const(d_q).view(), gradients);
  }
};

class SynthesizerFactorizedDense final
    : public mixing::Synthesizer<SynthesizerFactorizedDense, FactorizedDenseScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_factorized_dense",
            "value d × d; per head twice W1 inner × d, b1, W2 a × inner, b2; inner = d / heads, a "
            "= ⌈√n⌉, b = ⌈n / a⌉",
            MaskSupport::kAny,
            true,
            "the leading products",
            "3 n d² + n² d",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerFactorizedDense>());

}  // namespace
}  // namespace masque::nn
