// Log-probabilities over a vocabulary without keeping the logits.
#pragma once

#include <span>

#include "base/types.hpp"
#include "kernel/product/linear.hpp"

namespace masque::kernel {

/// out[r] = log softmax(x_r Wᵀ + b)[targets[r]], in nats: one number in `out` and one id in
/// `targets` for each row of `x`. `head` maps the states x (rows, hidden) to logits; they are
/// computed for a few rows and columns at a time. `scale` > 0 multiplies the logits; the logit of
/// the token `excluded`, which must not be a target, counts as −∞ (−1: no such token); `cap` > 0
/// bounds logits softly, before the scale (soft_cap()). Log-sum-exp
/// is added up in a fixed order, over chunks of 1,024 outputs in double. Memory: 1,024 logits of
/// 128 rows for each thread, and 16 bytes for each row and 1,024 outputs.
template <class T>
void log_probability_forward(MatrixView<const T> x, const Linear<T>& head, double scale,
                             std::span<const TokenId> targets, std::span<double> out,
                             TokenId excluded = -1, double cap = 0);

}  // namespace masque::kernel
