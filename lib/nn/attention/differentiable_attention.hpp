// Attention for training: forward and backward over many sequences, with dropout, fast in float.
// Nothing of the size of the scores is kept between the two passes.
//
//     a = normalizer(scale · q·k + bias, mask);  a ← a ⊙ c ⊙ keep;  o = a v + Σ_j a_ij r_ij
//
// The backward pass recomputes the weights from one number per row (Dao 2022, arXiv:2205.14135, and
// Rabe 2021, arXiv:2112.05682, for softmax; the same rule serves every normalizer here).
#pragma once

#include <complex>
#include <span>

#include "base/random/random.hpp"
#include "nn/attention/materialized_attention.hpp"

namespace masque::nn {

/// The attention of one sequence. Views and pointers are borrowed; what is null is left out.
template <class T>
struct DifferentiableAttention {
  /// With bf16 every operand of a product is rounded to bfloat16, also of the backward products,
  /// which take the rounding for the identity. `log_divisors` and `scores` are empty.
  AttentionProblem<T> problem;
  const WeightTerms<T>* weight_terms = nullptr;  ///< c_ij, after the normalizer
  const ValueTerms<T>* value_terms = nullptr;    ///< r_ij, next to the values
  /// Probability that a weight falls, after `weight_terms`; the others are divided by 1 − dropout.
  /// Pair (i, j) of head h uses number (h · T + i) · S + j of the stream.
  double dropout = 0;
  RandomStream stream{0, ""};  ///< random numbers of `dropout`
};

/// Where gradients are added; a view without data, or null, is left out. Those of sinks are those
/// of add_sink_gradients(). Weight terms and value
/// terms are given if and only if the attention has them: the rest needs their backward pass.
template <class T>
struct DifferentiableGradients {
  MatrixView<T> query,                     ///< (T, heads · head size)
      key,                                 ///< (S, key heads · head size)
      value;                               ///< (S, key heads · value size)
  ScoreTermsGradient<T>* bias = nullptr;   ///< gradients of position terms of scores
  WeightTerms<T>* weight_terms = nullptr;  ///< those of the attention
  ValueTerms<T>* value_terms = nullptr;    ///< those of the attention
  /// With DifferentiableBackward::own_keys: what earlier keys get, in place of `key`.
  MatrixView<T> earlier_key = {},
                earlier_value = {};  ///< what earlier values get, in place of `value`
};

/// The forward pass of one sequence.
template <class T>
struct DifferentiableForward {
  DifferentiableAttention<T> attention;  ///< inputs
  MatrixView<T> context;  ///< out: (T, heads · value size); rows that see no key get 0
  MatrixView<T> saved;    ///< out: (heads, T), for the backward pass; or empty
};

/// The backward pass of one sequence; attention, context and saved are those of the forward pass.
template <class T>
struct DifferentiableBackward {
  DifferentiableAttention<T> attention;  ///< inputs
  MatrixView<const T> context;           ///< (T, heads · value size)
  MatrixView<const T> saved;             ///< (heads, T)
  MatrixView<const T> d_context;         ///< gradient by `context`, of its shape
  DifferentiableGradients<T> gradients;  ///< outputs: is added to
  /// The first key that is a query's own, for each query; keys before it are earlier ones. Empty:
  /// all keys are its own.
  std::span<const Index> own_keys = {};
};

/// Runs the forward pass of all `sequences`, of any shapes. T is float or double. Key heads of
/// sequences run in parallel, serial inside a parallel region; results do not depend on threads.
/// Position terms are called from several threads, for different heads.
/// Cost: 4 · visible pairs · head size a head. Memory, kept by each thread: keys and values of a
/// head twice, and 16 rows of scores; with weight or value terms (T, S) once.
template <class T>
void differentiable_attention_forward(std::span<const DifferentiableForward<T>> sequences);
/// Runs the backward pass of all `sequences`. The gradients of different sequences must not
/// overlap. If one of them has gradients of position terms all run on the calling thread, in order,
/// since those may share parameters.
/// Cost: 10 · visible pairs · head size. Memory of a thread: keys and values of a head twice, their
/// gradients once; with position terms three times (T, S).
template <class T>
void differentiable_attention_backward(std::span<const DifferentiableBackward<T>> sequences);
/// Adds to `d_sinks`, one number a head, the gradients of AttentionProblem::sinks of `sequence`: a
/// sink takes weight from all keys of a row. Sums over rows in order. Cost: T · heads · value size.
template <class T>
void add_sink_gradients(const DifferentiableBackward<T>& sequence, std::span<T> d_sinks);

}  // namespace masque::nn
