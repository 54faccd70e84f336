// B = R₁ R₂ᵀ, both (n, inner).
#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

struct FactorizedRandomScores {
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    const Index rank = shape.inner_size > 0 ? shape.inner_size : 8;
    const Index rows = shape.num_attention_heads * shape.tokens;
    // Scores of deviation 1, as those of synthesizer_random.
    const double deviation = std::pow(static_cast<double>(rank), -0.25);
    out.push_back({"random1.weight", rows, rank, 0, deviation});
    out.push_back({"random2.weight", rows, rank, 0, deviation});
  }

  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    return mixing::project(leading(problem, problem.parameters[p], head),
                           leading(problem, problem.parameters[p + 1], head));
  }

  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    kernel::matmul_backward<T>(leading(problem, problem.parameters[p], head),
                               leading(problem, problem.parameters[p + 1], head), d_scores,
                               leading(problem, gradients.parameters[p], head),
                               leading(problem, gradients.parameters[p + 1], head));
  }

 private:
  template <class T, class U>
  static MatrixView<U> leading(const MixerProblem<T>& problem, MatrixView<U> r, Index head) {
    return mixing::head_rows(problem.shape, r, head).middle_rows(0, problem.x.rows);
  }
};

class SynthesizerFactorizedRandom final
    : public mixing::Synthesizer<SynthesizerFactorizedRandom, FactorizedRandomScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_factorized_random",
            "value d × d; two factors n × inner of each head; inner = 8",
            MaskSupport::kAny,
            false,
            "the leading rows of both factors",
            "n d² + n² d + n² heads inner",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerFactorizedRandom>());

}  // namespace
}  // namespace masque::nn
