// Distributions over a vocabulary, from logits.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "kernel/softmax/log_sum.hpp"
#include "model/model.hpp"

namespace masque::evaluate {

/// Whether the head of `design` predicts tokens.
inline bool has_vocabulary(const model::Design& design) {
  return design.head.kind == model::HeadKind::kMasked ||
         design.head.kind == model::HeadKind::kCausal;
}

/// Probabilities and their logarithms (nats).
struct TokenDistribution {
  std::vector<double> probability,  ///< probability of each id; they sum to 1
      logarithm;                    ///< logarithms of these, nats
};

/// softmax of `logits`, one for each id, at least one. In double.
template <class T>
TokenDistribution predict(std::span<const T> logits) {
  TokenDistribution p;
  p.logarithm.assign(logits.begin(), logits.end());
  p.probability.resize(logits.size());
  const kernel::LogSum whole = kernel::log_sum(p.logarithm);
  for (std::size_t v = 0; v < p.logarithm.size(); ++v) {
    p.logarithm[v] = p.logarithm[v] - whole;
    p.probability[v] = std::exp(p.logarithm[v]);
  }
  return p;
}

/// The most probable id of `p`; of several the first.
inline TokenId most_probable(const TokenDistribution& p) {
  return static_cast<TokenId>(std::ranges::max_element(p.logarithm) - p.logarithm.begin());
}

/// KL(`p` ‖ `q`) in nats, at least 0. Both have the same ids.
inline double divergence(const TokenDistribution& p, const TokenDistribution& q) {
  double sum = 0;
  for (std::size_t v = 0; v < p.probability.size(); ++v) {
    if (p.probability[v] > 0) sum += p.probability[v] * (p.logarithm[v] - q.logarithm[v]);
  }
  return std::max(sum, 0.0);
}

/// ½ Σ |p − q|, the total variation distance of `p` and `q`: 0 … 1.
inline double total_variation(const TokenDistribution& p, const TokenDistribution& q) {
  double sum = 0;
  for (std::size_t v = 0; v < p.probability.size(); ++v) {
    sum += std::abs(p.probability[v] - q.probability[v]);
  }
  return sum / 2;
}

}  // namespace masque::evaluate
