// Log-probabilities over a vocabulary without keeping the logits.
#pragma once

#include <span>

#include "base/types.hpp"
#include "kernel/linear.hpp"

namespace masque::kernel {

/// out[r] = log softmax(x_r Wᵀ + b)[targets[r]], in nats. `head` maps the states x (rows, hidden)
/// to logits; they are made for a few rows and columns at a time. `scale` multiplies the logits;
/// that of the token `excluded`, which must be no target, counts as −∞ (-1: none). Log-sum-exp is
/// summed in double in a fixed order. Memory O(rows · 4096).
template <class T>
void log_probability_forward(MatrixView<const T> x, const Linear<T>& head, double scale,
                             std::span<const TokenId> targets, std::span<double> out,
                             TokenId excluded = -1);

}  // namespace masque::kernel
