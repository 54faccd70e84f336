// The definition of the head's loss: one row at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/types.hpp"
#include "kernel/number/scalar.hpp"
#include "kernel/softmax/vocabulary_loss.hpp"

namespace masque::kernel::reference {

// The definition of the cross-entropy: one row at a time.

/// log Σ exp x as the sum of two numbers: large x keep their differences.
template <class T>
struct LogSumExp {
  T shift;  ///< the largest real part, against overflow
  T rest;   ///< log Σ exp(x − shift)
};

/// log Σ exp x over the `n` numbers of `x`, n > 0.
template <class T>
LogSumExp<T> log_sum_exp(const T* x, Index n) {
  // The shift is a constant: its derivative cancels.
  double largest = -std::numeric_limits<double>::infinity();
  for (Index j = 0; j < n; ++j) {
    if (!(real_part(x[j]) <= largest)) largest = real_part(x[j]);
  }
  const T shift = number<T>(largest);
  T sum(0);
  for (Index j = 0; j < n; ++j) sum += std::exp(x[j] - shift);
  return {shift, std::log(sum)};
}

/// −log softmax(logits)[target] of `n` `logits`, in nats; `target` in [0, n).
template <class T>
T cross_entropy_row(const T* logits, Index n, Index target) {
  const LogSumExp<T> whole = log_sum_exp(logits, n);
  return whole.rest - (logits[target] - whole.shift);
}

/// Adds the gradient of cross_entropy_row: `d_logits` += (softmax(logits) − one-hot(target)) ·
/// `d_loss`, `n` elements of `logits` and d_logits.
template <class T>
void cross_entropy_row_backward(const T* logits, Index n, Index target, T d_loss, T* d_logits) {
  const LogSumExp<T> whole = log_sum_exp(logits, n);
  for (Index j = 0; j < n; ++j)
    d_logits[j] += std::exp((logits[j] - whole.shift) - whole.rest) * d_loss;
  d_logits[target] -= d_loss;
}

// The loss of the head.

/// The `logits` of `row` of `task`, vocabulary numbers: `logits` has that size already.
template <class T>
void logits_row(const VocabularyTask<T>& task, Index row, std::vector<T>& logits) {
  for (Index v = 0; v < task.weight.rows; ++v) {
    T sum = task.bias.empty() ? T(0) : task.bias[static_cast<std::size_t>(v)];
    for (Index k = 0; k < task.x.columns; ++k) sum += task.x.at(row, k) * task.weight.at(v, k);
    if (task.cap > 0) sum = number<T>(task.cap) * std::tanh(sum / number<T>(task.cap));
    // Finite: a difference of two is a number.
    if (v == task.excluded) sum = number<T>(-1e30);
    logits[static_cast<std::size_t>(v)] = sum;
  }
}

/// The first index of `values`, not empty, whose real part is the largest.
template <class T>
Index first_largest(const std::vector<T>& values) {
  std::size_t best = 0;
  for (std::size_t v = 1; v < values.size(); ++v) {
    if (real_part(values[v]) > real_part(values[best])) best = v;
  }
  return static_cast<Index>(best);
}

/// From `d_logits`, the gradient by the logits of `row` of `task`, adds d_logits W to
/// gradients.x, d_logitsᵀ x to gradients.weight and d_logits to gradients.bias; those of
/// `gradients` without data are left out.
template <class T>
void add_logit_gradients(const VocabularyTask<T>& task, Index row, const std::vector<T>& d_logits,
                         const VocabularyGradients<T>& gradients) {
  for (Index v = 0; v < task.weight.rows; ++v) {
    const T d = d_logits[static_cast<std::size_t>(v)];
    for (Index k = 0; k < task.x.columns; ++k) {
      if (gradients.x.data != nullptr) gradients.x.at(row, k) += d * task.weight.at(v, k);
      if (gradients.weight.data != nullptr) gradients.weight.at(v, k) += d * task.x.at(row, k);
    }
    if (!gradients.bias.empty()) gradients.bias[static_cast<std::size_t>(v)] += d;
  }
}

/// The token at which the sum of the softmax of `logits`, from token 0 on, first
/// exceeds `uniform` in [0, 1).
template <class T>
TokenId draw_token(const std::vector<T>& logits, double uniform) {
  const double largest = real_part(logits[static_cast<std::size_t>(first_largest(logits))]);
  double total = 0;
  for (const T& logit : logits) total += std::exp(real_part(logit) - largest);
  double sum = 0;
  std::size_t token = 0;
  for (; token + 1 < logits.size(); ++token) {
    sum += std::exp(real_part(logits[token]) - largest);
    if (sum > uniform * total) break;
  }
  return static_cast<TokenId>(token);
}

/// Defines kernel::vocabulary_loss, with the same `task`, `gradients`, `losses`, `draws` and
/// `draw_losses`, for any number type.
template <class T>
VocabularyLoss<T> vocabulary_loss(const VocabularyTask<T>& task,
                                  const VocabularyGradients<T>& gradients, std::span<double> losses,
                                  std::span<TokenId> draws, std::span<double> draw_losses = {}) {
  VocabularyLoss<T> result;
  const Index vocabulary = task.weight.rows;
  std::vector<T> logits(static_cast<std::size_t>(vocabulary)), d_logits(logits.size());
  for (Index row = 0; row < task.x.rows; ++row) {
    const auto r = static_cast<std::size_t>(row);
    logits_row(task, row, logits);
    const T weight = number<T>(task.row_weights[r]);
    const T loss = cross_entropy_row(logits.data(), vocabulary, Index{task.targets[r]});
    result.sum += weight * loss;
    if (!losses.empty()) losses[r] = real_part(loss);
    if (!draws.empty()) draws[r] = draw_token(logits, task.uniforms[r]);
    if (!draw_losses.empty()) {
      draw_losses[r] = real_part(cross_entropy_row(logits.data(), vocabulary, Index{draws[r]}));
    }
    if (first_largest(logits) == task.targets[r]) ++result.correct;
    std::fill(d_logits.begin(), d_logits.end(), T(0));
    cross_entropy_row_backward(logits.data(), vocabulary, Index{task.targets[r]}, weight,
                               d_logits.data());
    for (std::size_t v = 0; task.cap > 0 && v < logits.size(); ++v) {
      const T ratio = logits[v] / number<T>(task.cap);
      if (static_cast<TokenId>(v) != task.excluded) d_logits[v] *= number<T>(1) - ratio * ratio;
    }
    add_logit_gradients(task, row, d_logits, gradients);
  }
  return result;
}

}  // namespace masque::kernel::reference
