// aMLP: gMLP whose gate also gets what an attention of one small head reads from LN(x).
#include "nn/mixer/gmlp.hpp"

namespace masque::nn {
namespace {

struct AttentiveGate : mixing::StaticGate {
  static constexpr bool kExtra = true;

  static void declare_extra(const MixerShape& shape, Index half, std::vector<MixerParameter>& out) {
    const Index size = shape.attention_size;
    out.push_back(
        mixing::weight_parameter("attention_in.weight", Index{3} * size, shape.hidden_size));
    out.push_back(mixing::constant_parameter("attention_in.bias", 1, Index{3} * size, 0));
    out.push_back(mixing::weight_parameter("attention_out.weight", half, size));
    out.push_back(mixing::constant_parameter("attention_out.bias", 1, half, 0));
  }

  template <class T>
  static void add_extra(const MixerProblem<T>& problem, std::size_t p, MatrixView<const T> norm,
                        MatrixView<T> gate) {
    const State<T> s = state_of(problem, p, norm);
    Matrix<T> out = mixing::project(s.context.view(), problem.parameters[p + 2]);
    mixing::add_to_rows(problem.parameters[p + 3], out.view());
    kernel::add_to<T>(out.view(), gate);
  }

  template <class T>
  static void extra_backward(const MixerProblem<T>& problem, std::size_t p,
                             MatrixView<const T> norm, MatrixView<const T> d_gate,
                             MatrixView<T> d_norm, const MixerGradients<T>& gradients) {
    const State<T> s = state_of(problem, p, norm);
    const auto w = problem.parameters.subspan(p);
    const auto d = gradients.parameters.subspan(p);
    const Index size = problem.shape.attention_size;
    mixing::add_row_sums(d_gate, d[3]);
    Matrix<T> d_context = Matrix<T>::zero(norm.rows, size);
    kernel::matmul_backward<T>(s.context.view(), w[2], d_gate, d_context.view(), d[2]);
    Matrix<T> d_joint = Matrix<T>::zero(norm.rows, Index{3} * size);
    const Matrix<T> d_weights =
        mixing::project(std::as_const(d_context).view(), part(s.joint.view(), 2, size));
    mixing::add_transposed_product<T>(s.weights.view(), d_context.view(),
                                      part(d_joint.view(), 2, size));
    Matrix<T> d_scores = mixing::softmax_backward<T>(s.weights.view(), d_weights.view());
    for (T& score : d_scores.span()) score *= scale<T>(size);
    kernel::matmul_backward<T>(part(s.joint.view(), 0, size), part(s.joint.view(), 1, size),
                               d_scores.view(), part(d_joint.view(), 0, size),
                               part(d_joint.view(), 1, size));
    mixing::add_row_sums<T>(d_joint.view(), d[1]);
    kernel::matmul_backward<T>(norm, w[0], d_joint.view(), d_norm, d[0]);
  }

 private:
  template <class T>
  struct State {
    Matrix<T> joint;    ///< query, key, value side by side (T, 3 size)
    Matrix<T> weights;  ///< (T, T)
    Matrix<T> context;  ///< (T, size)
  };

  template <class T>
  static MatrixView<T> part(MatrixView<T> joint, Index which, Index size) {
    return joint.middle_columns(which * size, size);
  }
  template <class T>
  static T scale(Index size) {
    return static_cast<T>(1 / std::sqrt(static_cast<double>(size)));
  }

  template <class T>
  static State<T> state_of(const MixerProblem<T>& problem, std::size_t p,
                           MatrixView<const T> norm) {
    const Index size = problem.shape.attention_size;
    State<T> s;
    s.joint = mixing::project(norm, problem.parameters[p]);
    mixing::add_to_rows(problem.parameters[p + 1], s.joint.view());
    const MatrixView<const T> joint = s.joint.view();
    s.weights = mixing::project(part(joint, 0, size), part(joint, 1, size));
    for (T& score : s.weights.span()) score *= scale<T>(size);
    mixing::masked_softmax(problem.blocks, s.weights.view());
    s.context = mixing::product(std::as_const(s.weights).view(), part(joint, 2, size));
    return s;
  }
};

class Amlp final : public mixing::GatedMixer<Amlp, AttentiveGate> {
 public:
  static MixerInfo describe() {
    return {"amlp",
            "as gmlp, with attention 3 a × d and inner / 2 × a, both with bias; a = attention_size "
            "= 64",
            MaskSupport::kAny,
            true,
            "the leading rows and columns of W",
            "1.5 n d inner + 0.5 n² inner + 3 n d a + 2 n² a + 0.5 n a inner",
            "Liu 2021, arXiv:2105.08050",
            {&MixerShape::inner_size, &MixerShape::attention_size}};
  }
};

const MixerRegistration kRegistration(std::make_unique<Amlp>());

}  // namespace
}  // namespace masque::nn
