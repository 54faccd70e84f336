// The choice of a token from logits: greedy or sampled.
#pragma once

#include <span>
#include <vector>

#include "base/random/random.hpp"
#include "kernel/softmax/log_sum.hpp"

namespace masque::evaluate {

/// How the next token is chosen; names and rules are those of transformers' generate, numbers are
/// double.
struct SamplingOptions {
  bool do_sample = false;  ///< otherwise the most probable token, of equals the first
  double temperature = 1;  ///< logits are divided by it; > 0
  Index top_k = 0;         ///< then tokens less probable than the k-th are removed; 0: none
  double top_p = 1;        ///< then only the most probable tokens with this probability are kept
};

using kernel::log_sum;

/// The probability that each token is drawn with: softmax of `logits` / temperature, without the
/// tokens that top_k and top_p of `options` take out. They sum to 1. O(V log V).
std::vector<double> sampling_probabilities(std::span<const double> logits,
                                           const SamplingOptions& options);

/// The next token by `logits` and `options`; `uniform`, in [0, 1), decides which one is drawn. The
/// result's probability is not 0.
TokenId choose_token(std::span<const double> logits, const SamplingOptions& options,
                     double uniform);

/// The number of a draw, in [0, 1), 53 bits: a function of the `stream`, the `sample` and its
/// `place` (each below 2³²).
double uniform_at(const RandomStream& stream, Index sample, Index place);

}  // namespace masque::evaluate
