// What stands on the last states: a vocabulary or one number, with its loss.
#pragma once

#include <complex>
#include <optional>
#include <span>
#include <vector>

#include "model/forward/head_forward.hpp"
#include "train/network/dense.hpp"
#include "train/network/trained_norm.hpp"

namespace masque::train {

/// Sums over rows.
template <class T>
struct LossSums {
  std::conditional_t<std::is_same_v<T, float>, double, T> loss{};  ///< weighted, in nats
  Index correct = 0;                                               ///< rows that are right
  Index predicted_replaced = 0;  ///< rows that a discriminator takes for replaced
  Index true_positives = 0;      ///< those of them that are

  void add(const LossSums& other) {
    loss += other.loss;
    correct += other.correct;
    predicted_replaced += other.predicted_replaced;
    true_positives += other.true_positives;
  }
};

/// Of one logit: −log σ(z) if the token is replaced, else −log σ(−z), and the derivative by z.
template <class T>
struct LogitLoss {
  T loss{};
  T slope{};
  bool called = false;  ///< taken for replaced: z > 0
};
template <class T>
LogitLoss<T> logit_loss(T z, bool replaced);

/// Rows that a head judges.
template <class T>
struct HeadTask {
  MatrixView<const T> last;             ///< last states (rows, hidden size)
  std::span<const TokenId> targets;     ///< of a discriminator 1 (replaced) or 0
  std::span<const double> row_weights;  ///< of the losses
  /// Where tokens are drawn from a vocabulary, by kernel::vocabulary_loss: one a row, else empty.
  std::span<const double> uniforms = {};
  std::span<TokenId> draws = {};
  std::span<double> draw_losses = {};  ///< −log p of the draws, or empty
  /// Added to the number of a head that has one, one a row, constants; empty: 0.
  std::span<const double> offsets = {};
};

/// The head of a design, of any kind. T as of Encoder. For one thread; kernels use all.
template <class T>
class Head {
 public:
  Head(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
       kernel::Precision precision);

  /// From now on this token of the vocabulary has the probability 0: its logit counts as −∞, and
  /// has no gradient.
  void exclude(TokenId token);
  /// Packs the weights: after every change of the values.
  void prepare();
  /// Loss of the rows. With `d_last` (filled; rows, hidden size) also all gradients, added to those
  /// of the parameters. `losses`: one a row, unweighted, or empty.
  LossSums<T> run(const HeadTask<T>& task, MatrixView<T> d_last, std::span<double> losses = {});

 private:
  LossSums<T> vocabulary(const HeadTask<T>& task, MatrixView<const T> states,
                         MatrixView<T> d_states, std::span<double> losses);
  LossSums<T> discriminate(const HeadTask<T>& task, MatrixView<const T> states,
                           MatrixView<T> d_states, std::span<double> losses);

  model::Design design_;
  ParameterMap map_;
  Parameters<T>* parameters_;
  kernel::Precision precision_;
  std::optional<TokenId> excluded_;
  std::vector<T> biases_;  ///< with that of the excluded token
  /// Of model::head_forward.
  struct Weights {
    Dense<T> transform;
    TrainedNorm<T> norm;
  };
  Weights weights_;
  model::HeadMemory<T> memory_;
  Matrix<T> d_states_, d_active_, d_raw_;
};

}  // namespace masque::train
