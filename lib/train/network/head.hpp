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

  /// Adds the sums of `other`.
  void add(const LossSums& other) {
    loss += other.loss;
    correct += other.correct;
    predicted_replaced += other.predicted_replaced;
    true_positives += other.true_positives;
  }
};

/// The loss of one logit z of a discriminator (ELECTRA).
template <class T>
struct LogitLoss {
  T loss{};             ///< nats
  T slope{};            ///< its derivative by z
  bool called = false;  ///< taken for replaced: z > 0
};
/// Returns −log σ(`z`) if the token is `replaced`, else −log σ(−z), with the derivative by z. T is
/// float, double or `std::complex<double>`.
template <class T>
LogitLoss<T> logit_loss(T z, bool replaced);

/// Rows that a head judges.
template <class T>
struct HeadTask {
  MatrixView<const T> last;             ///< last states [rows, hidden_size]
  std::span<const TokenId> targets;     ///< one a row; of a discriminator 1 (replaced) or 0
  std::span<const double> row_weights;  ///< weights of the losses, one a row
  /// Where tokens are drawn from a vocabulary, by kernel::vocabulary_loss: numbers in [0, 1), one a
  /// row, else empty.
  std::span<const double> uniforms = {};
  std::span<TokenId> draws = {};       ///< ← the drawn tokens, one a row, or empty
  std::span<double> draw_losses = {};  ///< ← −log p of the draws in nats, or empty
  /// Added to the number of a head that has one, one a row, constants; empty: 0.
  std::span<const double> offsets = {};
};

/// The head of a design, of any kind. T as of Encoder. For one thread; kernels use all.
template <class T>
class Head {
 public:
  /// For the head of `design`, which has one, at the places `map` of `parameters`, which must stay;
  /// products are in `precision`.
  Head(const model::Design& design, const ParameterMap& map, Parameters<T>& parameters,
       kernel::Precision precision);

  /// From now on `token` of the vocabulary has the probability 0: its logit counts as −∞, and has
  /// no gradient. Not of a discriminator.
  void exclude(TokenId token);
  /// Packs the weights: to be called before the first run and after every change of the values.
  void prepare();
  /// Returns the losses of the rows of `task`. With data in `d_last` `[rows, hidden_size]` also
  /// fills that with the gradient by the last states, and adds all gradients to those of the
  /// parameters. `losses` ← one a row, unweighted, in nats, unless it is empty.
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
  /// As model::head_forward reads them.
  struct Weights {
    Dense<T> transform;
    TrainedNorm<T> norm;
  };
  Weights weights_;
  model::HeadMemory<T> memory_;
  Matrix<T> d_states_, d_active_, d_raw_;
};

}  // namespace masque::train
