// Attention with everything that may happen between scores and context: talking heads,
// scores of the layer before, factors of weights, terms of values. The scores of all heads exist at
// once. Forward in plain loops: the definition; backward with the products of kernel. For float,
// double and std::complex<double>.
#pragma once

#include <span>
#include <vector>

#include "nn/attention/attention.hpp"

namespace masque::nn {

/// Backward of the position terms of scores (a ScoreBias that is trained or depends on queries and
/// keys).
template <class T>
class ScoreTermsGradient {
 public:
  virtual ~ScoreTermsGradient() = default;
  /// From `d_scores` (T, S), gradients of what the terms were added to in `head`, adds to the
  /// gradients of its own parameters, which it holds, and to `d_query` and `d_key`; these, `query`
  /// and `key` are the columns of the head. A view without data is left out.
  virtual void backward(Index head, MatrixView<const T> query, MatrixView<const T> key,
                        MatrixView<const T> d_scores, MatrixView<T> d_query,
                        MatrixView<T> d_key) = 0;
};

/// What multiplies weights, after the normalizer (URPE).
template <class T>
class WeightTerms {
 public:
  virtual ~WeightTerms() = default;
  /// weights(i, j) *= c_ij of `head`, for `weights` (T, S).
  virtual void multiply(Index head, MatrixView<T> weights) const = 0;
  /// `weights` (T, S) of `head` before the factor; `d_weights` becomes the gradient by them. Adds
  /// to the gradients of its own parameters, if it holds any.
  virtual void multiply_backward(Index head, MatrixView<const T> weights,
                                 MatrixView<T> d_weights) = 0;
};

/// What is added to values pair by pair (Shaw): context_i += Σ_j a_ij r_ij.
template <class T>
class ValueTerms {
 public:
  virtual ~ValueTerms() = default;
  /// context_i += Σ_j a_ij r_ij for `head`, `weights` a (T, S) and `context` (T, value size).
  virtual void add(Index head, MatrixView<const T> weights, MatrixView<T> context) const = 0;
  /// From `d_context` (T, value size) of `head` and its `weights` (T, S) adds to `d_weights` and to
  /// the gradients of its own parameters, if it holds any.
  virtual void add_backward(Index head, MatrixView<const T> weights, MatrixView<const T> d_context,
                            MatrixView<T> d_weights) = 0;
};

/// Attention of one sequence. Views and pointers are borrowed; what is empty or null is left out.
///     s = scale · q·k + bias (+ s of the layer before);  s ← Λ_before s over heads
///     a = normalizer(s, mask, k largest);  a ← Λ_after a over heads;  a ← a ⊙ c
///     o = a v + Σ_j a_ij r_ij
/// `problem.num_heads` counts heads of scores; head h of n reads key or value head ⌊h · m / n⌋, n
/// the number of heads of scores or of values, m that of keys or of what `problem.value` has. Sizes
/// of keys and of values are those of their columns, independent of each other and of the numbers
/// of heads. Talking heads: Shazeer 2020, arXiv:2003.02436. RealFormer: He 2020, arXiv:2012.11747.
template <class T>
struct MaterializedAttention {
  /// Without bf16. Its `log_divisors` and `scores`, where they are not empty, become those of the
  /// normalizer: of each head of weights, with previous scores, −∞ also where `largest` hides.
  AttentionProblem<T> problem;
  MatrixView<const T> talking_before;  ///< Λ (heads of weights, heads of scores)
  MatrixView<const T> talking_after;   ///< Λ (heads of values, heads of weights)
  /// Heads in the columns of `problem.value`, a divisor of the heads of values; 0: as many as in
  /// `problem.key`.
  Index num_value_heads = 0;
  /// RealFormer's previous scores, (T, S) for each head of scores.
  std::span<const MatrixView<const T>> previous;
  /// What the next layer gets as `previous`: without `previous` (RealFormer as bert4keras has it,
  /// one layer deep), else accumulated over all layers.
  bool pass_own_scores = false;
  /// How many keys each query of each head of weights keeps, those with the largest scores, of
  /// equal ones the first; the others are hidden. 0: all. Zhao et al. 2019, arXiv:1912.11637.
  Index largest = 0;
  const WeightTerms<T>* weight_terms = nullptr;  ///< c_ij, after Λ_after; nullptr: none
  const ValueTerms<T>* value_terms = nullptr;    ///< r_ij, next to the values; nullptr: none
};

/// What the backward pass and the next layer need.
template <class T>
struct MaterializedSaved {
  /// What the next layer takes as `previous`: the scores of each head, before Λ_before.
  std::vector<Matrix<T>> scores;
  std::vector<Matrix<T>> normalized;  ///< weights as the normalizer gives them
  std::vector<Matrix<T>> weights;     ///< after Λ_after and the factor: what meets the values
};

/// Where gradients are added; a view without data, or null, is left out. Weight terms and value
/// terms are given where the attention has them: the rest needs their backward pass.
template <class T>
struct MaterializedGradients {
  /// By the queries; here as below in the shape of what it is the gradient by.
  MatrixView<T> query,
      key,                       ///< by the keys
      value;                     ///< by the values
  MatrixView<T> talking_before,  ///< by Λ_before
      talking_after;             ///< by Λ_after
  /// A matrix for each head of scores, as `MaterializedAttention::previous`.
  std::span<const MatrixView<T>> previous;
  /// In: the gradients by MaterializedSaved::scores of the later layer that took them, if one did.
  std::span<const MatrixView<const T>> scores;
  /// In: what else depends on MaterializedSaved::normalized, by head: gradients that join those of
  /// the context.
  std::span<const MatrixView<const T>> normalized;
  ScoreTermsGradient<T>* bias = nullptr;   ///< gradients of position terms of scores
  WeightTerms<T>* weight_terms = nullptr;  ///< those of the attention
  ValueTerms<T>* value_terms = nullptr;    ///< those of the attention
};

/// Sets `context` (T, heads of values · value size) to that of `attention`. Fills `saved` if it is
/// not null. A query that sees no key gets 0. T is float, double or std::complex<double>. Serial.
/// Cost: as attention, and T · S · (H_s H_w + H_w H_v) for talking heads.
/// Memory: (T, S) for each head of scores, of weights and of values.
template <class T>
void materialized_attention_forward(const MaterializedAttention<T>& attention,
                                    MatrixView<T> context, MaterializedSaved<T>* saved);
/// From `d_context`, the gradient by the context, adds to `gradients`. `attention` and
/// `saved` are those of the forward pass, without sinks. T is float or double. On the calling
/// thread, except for the products of kernel.
template <class T>
void materialized_attention_backward(const MaterializedAttention<T>& attention,
                                     const MaterializedSaved<T>& saved,
                                     MatrixView<const T> d_context,
                                     const MaterializedGradients<T>& gradients);

}  // namespace masque::nn
