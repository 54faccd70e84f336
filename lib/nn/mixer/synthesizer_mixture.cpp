// B = Σ_k α_k B_k of two or three kinds of scores, α the softmax of as many trained numbers.
#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "nn/mixer/synthesizer.hpp"

namespace masque::nn {
namespace {

template <class... Parts>
struct MixtureScores {
  static constexpr std::size_t kParts = sizeof...(Parts);

  static void declare(const MixerShape& shape, std::vector<MixerParameter>& out) {
    out.push_back(mixing::constant_parameter("mixture.weight", 1, Index{kParts}, 0));
    (Parts::declare(shape, out), ...);
  }

  /// The first parameter of each part, when those of the mixture begin at `p`.
  static std::array<std::size_t, kParts> first_parameters(std::size_t p) {
    std::array<std::size_t, kParts> first{Parts::kParameters...};
    std::size_t next = p + 1;
    for (std::size_t& own : first) next += std::exchange(own, next);
    return first;
  }

  template <class T>
  static std::array<Matrix<T>, kParts> parts(const MixerProblem<T>& problem, std::size_t p,
                                             Index head) {
    const auto first = first_parameters(p);
    std::size_t k = 0;
    return {Parts::scores(problem, first[k++], head)...};
  }

  /// α (1, parts).
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
    for (std::size_t k = 0; k < kParts; ++k) {
      const auto from = all[k].span();
      for (std::size_t i = 0; i < from.size(); ++i) out.span()[i] += share.span()[k] * from[i];
    }
    return out;
  }

  template <class T>
  static void backward(const MixerProblem<T>& problem, std::size_t p, Index head,
                       MatrixView<const T> d_scores, const MixerGradients<T>& gradients) {
    const auto all = parts(problem, p, head);
    const Matrix<T> share = shares(problem, p);
    Matrix<T> d_share = Matrix<T>::zero(1, Index{kParts});
    std::array<Matrix<T>, kParts> d_parts;
    for (std::size_t k = 0; k < kParts; ++k) {
      const T alpha = share.span()[k];
      d_parts[k] = Matrix<T>::copy(d_scores);
      // As many terms as pairs of tokens, which nearly cancel: the sum is wide.
      std::conditional_t<std::is_same_v<T, float>, double, T> along{};
      for (std::size_t i = 0; i < all[k].span().size(); ++i) {
        along += all[k].span()[i] * d_parts[k].span()[i];
        d_parts[k].span()[i] *= alpha;
      }
      d_share.span()[k] = static_cast<T>(along);
    }
    const Matrix<T> d_mixture =
        mixing::softmax_backward<T>(share.view(), std::as_const(d_share).view());
    kernel::add_to<T>(d_mixture.view(), gradients.parameters[p]);
    const auto first = first_parameters(p);
    std::size_t k = 0;
    (
        [&] {
          Parts::template backward<T>(problem, first[k], head, std::as_const(d_parts[k]).view(),
                                      gradients);
          ++k;
        }(),
        ...);
  }
};

using mixing::DenseScores;
using mixing::FactorizedDenseScores;
using mixing::FactorizedRandomScores;
using mixing::VanillaScores;
using RandomScores = mixing::RandomScores<true>;

struct DenseRandomVanilla : MixtureScores<DenseScores, RandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_mixture";
  static constexpr const char* kInfo =
      "value, query, key d × d; three mixture weights; parameters of synthesizer_dense and "
      "synthesizer_random";
  static constexpr const char* kCost = "4 n d² + 3 n² d";
};
struct DenseRandom : MixtureScores<DenseScores, RandomScores> {
  static constexpr const char* kName = "synthesizer_dense_random";
  static constexpr const char* kInfo =
      "two mixture weights; parameters of synthesizer_dense and synthesizer_random";
  static constexpr const char* kCost = "2 n d² + 2 n² d";
};
struct DenseVanilla : MixtureScores<DenseScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_dense_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; two mixture weights; parameters of synthesizer_dense";
  static constexpr const char* kCost = "4 n d² + 3 n² d";
};
struct RandomVanilla : MixtureScores<RandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; two mixture weights; parameters of synthesizer_random";
  static constexpr const char* kCost = "3 n d² + 2 n² d";
};
struct FactorizedRandomVanilla : MixtureScores<FactorizedRandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_factorized_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; two mixture weights; parameters of synthesizer_factorized_random";
  static constexpr const char* kCost = "3 n d² + 2 n² d + n² heads inner";
};
struct DenseFactorizedRandom : MixtureScores<DenseScores, FactorizedRandomScores> {
  static constexpr const char* kName = "synthesizer_dense_factorized_random";
  static constexpr const char* kInfo =
      "two mixture weights; parameters of synthesizer_dense and synthesizer_factorized_random";
  static constexpr const char* kCost = "2 n d² + 2 n² d + n² heads inner";
};
struct DenseFactorizedRandomVanilla
    : MixtureScores<DenseScores, FactorizedRandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_dense_factorized_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; three mixture weights; parameters of synthesizer_dense and "
      "synthesizer_factorized_random";
  static constexpr const char* kCost = "4 n d² + 3 n² d + n² heads inner";
};
struct FactorizedDenseRandom : MixtureScores<FactorizedDenseScores, RandomScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_random";
  static constexpr const char* kInfo =
      "two mixture weights; parameters of synthesizer_factorized_dense and synthesizer_random";
  static constexpr const char* kCost = "3 n d² + n² d";
};
struct FactorizedDenseFactorizedRandom
    : MixtureScores<FactorizedDenseScores, FactorizedRandomScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_factorized_random";
  static constexpr const char* kInfo =
      "two mixture weights; parameters of synthesizer_factorized_dense and "
      "synthesizer_factorized_random";
  static constexpr const char* kCost = "3 n d² + n² d + n² heads inner";
};
struct FactorizedDenseVanilla : MixtureScores<FactorizedDenseScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; two mixture weights; parameters of synthesizer_factorized_dense";
  static constexpr const char* kCost = "5 n d² + 2 n² d";
};
struct FactorizedDenseRandomVanilla
    : MixtureScores<FactorizedDenseScores, RandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; three mixture weights; parameters of synthesizer_factorized_dense "
      "and synthesizer_random";
  static constexpr const char* kCost = "5 n d² + 2 n² d";
};
struct FactorizedDenseFactorizedRandomVanilla
    : MixtureScores<FactorizedDenseScores, FactorizedRandomScores, VanillaScores> {
  static constexpr const char* kName = "synthesizer_factorized_dense_factorized_random_vanilla";
  static constexpr const char* kInfo =
      "value, query, key d × d; three mixture weights; parameters of synthesizer_factorized_dense "
      "and synthesizer_factorized_random";
  static constexpr const char* kCost = "5 n d² + 2 n² d + n² heads inner";
};

template <class Scores>
class SynthesizerMixture final : public mixing::Synthesizer<SynthesizerMixture<Scores>, Scores> {
 public:
  static MixerInfo describe() {
    return {Scores::kName,
            Scores::kInfo,
            MaskSupport::kAny,
            true,
            "the leading rows and columns of the scores",
            Scores::kCost,
            "Tay 2020, arXiv:2005.00743"};
  }
};

const MixerRegistration kRegistrations[] = {
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseRandomVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseRandom>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<RandomVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedRandomVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseFactorizedRandom>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<DenseFactorizedRandomVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedDenseRandom>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedDenseFactorizedRandom>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedDenseVanilla>>()),
    MixerRegistration(std::make_unique<SynthesizerMixture<FactorizedDenseRandomVanilla>>()),
    MixerRegistration(
        std::make_unique<SynthesizerMixture<FactorizedDenseFactorizedRandomVanilla>>())};

}  // namespace
}  // namespace masque::nn
