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
  double min_p = 0;        ///< then tokens below this share of the greatest probability are removed
  /// Then only the tokens whose −log p is nearest to the entropy are kept, with this probability:
  /// locally typical sampling. Meister et al. 2023, arXiv:2202.00666.
  double typical_p = 1;
  /// Then tokens of a smaller probability are removed, but not the most probable one.
  double epsilon_cutoff = 0;
  /// Then the same below min(η, √η · exp(−entropy)). Hewitt et al. 2022, arXiv:2210.15191.
  double eta_cutoff = 0;
};

using kernel::log_sum;

/// The probability that each token is drawn with: softmax of `logits` / temperature, without the
/// tokens that `options` remove, each rule over what the rules before it have left. They sum to 1.
/// O(V log V).
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
