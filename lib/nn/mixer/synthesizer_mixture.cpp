// B = α₁ B_dense + α₂ R + α₃ q·k / √(head size), α the softmax of three trained numbers.
#include <array>

#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

/// Scores of vanilla attention.
struct VanillaScores {
  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back(mixing::weight_parameter("query.weight", shape.hidden_size, shape.hidden_size));
    out.push_back(mixing::weight_parameter("key.weight", shape.hidden_size, shape.hidden_size));
  }

  template <class T>
  static T scale(const MixerShape& shape) {
    const Index size = shape.hidden_size / shape.num_attention_heads;
    return static_cast<T>(1 / std::sqrt(static_cast<double>(size)));
  }

  /// The head's rows of W times x.
  template <class T>
  static Matrix<T> projected(const MixerProblem<T>& problem, std::size_t p, Index head) {
    return mixing::project(problem.x,
                           mixing::head_rows(problem.shape, problem.parameters[p], head));
  }

  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    const Matrix<T> query = projected(problem, p, head);
    const Matrix<T> key = projected(problem, p + 1, head);
    Matrix<T> out = mixing::project(query.view(), key.view());
    for (T& score : out.span()) score *= scale<T>(problem.shape);
    return out;
  }

  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    const Matrix<T> query = projected(problem, p, head);
    const Matrix<T> key = projected(problem, p + 1, head);
    Matrix<T> d_products = Matrix<T>::copy(d_scores);
    for (T& score : d_products.span()) score *= scale<T>(problem.shape);
    Matrix<T> d_query = Matrix<T>::zero(query.rows(), query.columns());
    Matrix<T> d_key = Matrix<T>::zero(key.rows(), key.columns());
    kernel::matmul_backward<T>(query.view(), key.view(), d_products.view(), d_query.view(),
                               d_key.view());
    const auto back = [&](std::size_t k, const Matrix<T>& d_projected) {
      kernel::matmul_backward<T>(problem.x,
                                 mixing::head_rows(problem.shape, problem.parameters[k], head),
                                 d_projected.view(), gradients.x,
                                 mixing::head_rows(problem.shape, gradients.parameters[k], head));
    };
    back(p, d_query);
    back(p + 1, d_key);
  }
};

struct MixtureScores {
  using Random = mixing::RandomScores<true>;
  using Dense = mixing::DenseScores;

  // After the parameter `mixture`, relative to it.
  static constexpr std::size_t kDense = 1;
  static constexpr std::size_t kRandom = kDense + Dense::kParameters;
  static constexpr std::size_t kVanilla = kRandom + Random::kParameters;

  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back(mixing::constant_parameter("mixture.weight", 1, 3, 0));
    Dense::declare(shape, out);
    Random::declare(shape, out);
    VanillaScores::declare(shape, out);
  }

  template <class T>
  static std::array<Matrix<T>, 3> parts(const MixerProblem<T>& problem, std::size_t p, Index head) {
    return {Dense::scores(problem, p + kDense, head), Random::scores(problem, p + kRandom, head),
            VanillaScores::scores(problem, p + kVanilla, head)};
  }

  /// α (1, 3).
  template <class T>
  static Matrix<T> shares(const MixerProblem<T>& problem, std::size_t p) {
    Matrix<T> out = Matrix<T>::copy(problem.parameters[p]);
    mixing::masked_softmax(nullptr, out.view());
    return out;
  }

  template <class T>
  static Matrix<T> scores(const MixerProblem<T>& problem, std::size_t p, Index head) {
    const auto all = parts(problem, p, head);
    const Matrix<T> share = shares(problem, p);
    Matrix<T> out = Matrix<T>::zero(problem.x.rows, problem.x.rows);
    for (Index k = 0; k < 3; ++k) {
      const auto from = all[static_cast<std::size_t>(k)].span();
      for (std::size_t i = 0; i < from.size(); ++i) {
        out.span()[i] += share.view().at(0, k) * from[i];
      }
    }
    return out;
  }

  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    const auto all = parts(problem, p, head);
    const Matrix<T> share = shares(problem, p);
    Matrix<T> d_share = Matrix<T>::zero(1, 3);
    std::array<Matrix<T>, 3> d_parts;
    for (std::size_t k = 0; k < 3; ++k) {
      const T alpha = share.span()[k];
      d_parts[k] = Matrix<T>::copy(d_scores);
      T along{};
      for (std::size_t i = 0; i < all[k].span().size(); ++i) {
        along += all[k].span()[i] * d_parts[k].span()[i];
        d_parts[k].span()[i] *= alpha;
      }
      d_share.span()[k] = along;
    }
    const Matrix<T> d_mixture =
        mixing::softmax_backward<T>(share.view(), std::as_const(d_share).view());
    kernel::add_to<T>(d_mixture.view(), gradients.parameters[p]);
    Dense::backward<T>(problem, p + kDense, head, d_parts[0].view(), gradients);
    Random::backward<T>(problem, p + kRandom, head, d_parts[1].view(), gradients);
    VanillaScores::backward<T>(problem, p + kVanilla, head, d_parts[2].view(), gradients);
  }
};

class SynthesizerMixture final : public mixing::Synthesizer<SynthesizerMixture, MixtureScores> {
 public:
  static MixerInfo describe() {
    return {"synthesizer_mixture",
            "value, query, key d × d; three shares; those of synthesizer_dense and "
            "synthesizer_random",
            MaskSupport::kAny,
            true,
            "the leading rows and columns of the scores",
            "4 n d² + 3 n² d",
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistration(std::make_unique<SynthesizerMixture>());

}  // namespace
}  // namespace masque::nn
