// The logarithm of a sum of exponentials in two parts, so that large logits keep their differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace masque::kernel {

/// log Σ exp x = `largest` + `rest`. As one number the sum would lose `rest` where the logits are
/// large: with 300 logits of 3e38 every log-probability would be 0 instead of −log 300.
struct LogSum {
  double largest = 0;  ///< the largest x
  double rest = 0;     ///< log Σ exp(x − largest), from 0
};

/// The log-probability, in nats, of the logit `x` whose `sum` is that of all logits.
inline double operator-(double x, const LogSum& sum) { return (x - sum.largest) - sum.rest; }

/// log Σ exp of the `logits`, at least one; some may be −∞, but not all.
inline LogSum log_sum(std::span<const double> logits) {
  LogSum all{*std::ranges::max_element(logits), 0};
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - all.largest);
  all.rest = std::log(sum);
  return all;
}

}  // namespace masque::kernel
