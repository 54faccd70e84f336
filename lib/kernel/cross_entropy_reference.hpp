// The definition of the cross-entropy: one row at a time.
#pragma once

#include <cmath>
#include <limits>

#include "base/types.hpp"
#include "kernel/scalar.hpp"

namespace masque::kernel::reference {

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

}  // namespace masque::kernel::reference
