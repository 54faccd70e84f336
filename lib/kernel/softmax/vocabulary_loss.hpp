// The head of a language model with its loss and gradients, without keeping all logits.
#pragma once

#include <complex>
#include <span>
#include <type_traits>

#include "base/types.hpp"
#include "kernel/number/precision.hpp"
#include "tensor/matrix.hpp"

namespace masque::kernel {

/// Logits x Wᵀ + b and the targets of their loss. Borrowed.
template <class T>
struct VocabularyTask {
  MatrixView<const T> x;                ///< (rows, hidden)
  MatrixView<const T> weight;           ///< (vocabulary, hidden)
  std::span<const T> bias;              ///< vocabulary elements, or empty
  std::span<const TokenId> targets;     ///< one for each row
  std::span<const double> row_weights;  ///< of the losses, one for each row
  /// In [0, 1), one for each row, if tokens are drawn; else empty.
  std::span<const double> uniforms = {};
  double cap = 0;         ///< c of a soft cap: a logit z becomes c · tanh(z / c); 0: none
  TokenId excluded = -1;  ///< its logit counts as −∞ and has no gradient; −1: no such token
};

/// Where gradients of the summed loss are added; a view without data is left out.
template <class T>
struct VocabularyGradients {
  MatrixView<T> x;       ///< (rows, hidden)
  MatrixView<T> weight;  ///< (vocabulary, hidden)
  std::span<T> bias;     ///< vocabulary elements
};

/// What vocabulary_loss returns.
template <class T>
struct VocabularyLoss {
  /// Double for T = float.
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  Sum sum{};          ///< Σ_r row_weights[r] · −log softmax(logits_r)[targets[r]], in nats
  Index correct = 0;  ///< rows whose first largest logit is the target's
};

/// Loss and `gradients` of `task`. Products in `precision` (T = float: kF32 or kBf16; else kF64).
///
/// `losses` receives −log softmax(logits_r)[targets[r]] of each row, in nats, unweighted; or is
/// empty. `draws` has one id a row where the task has uniforms, else it is empty: the token at
/// which the sum of softmax(logits_r), from token 0 on, first exceeds uniforms[r]. `draw_losses`
/// receives −log softmax(logits_r)[draws[r]] of each row, with draws alone; or is empty.
///
/// Takes the rows in chunks whose logits are about 32 MB; each logit is computed once, its
/// exponential too. O(rows · vocabulary · hidden); without gradients and draws only a few logits
/// exist at a time. Scratch memory is kept by the calling thread. The same bits for any number of
/// threads. A NaN or +∞ among the logits of a row makes its loss NaN.
template <class T>
VocabularyLoss<T> vocabulary_loss(const VocabularyTask<T>& task, Precision precision,
                                  const VocabularyGradients<T>& gradients,
                                  std::span<double> losses = {}, std::span<TokenId> draws = {},
                                  std::span<double> draw_losses = {});

}  // namespace masque::kernel
