#include "evaluate/write/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

constexpr double kLowest = -std::numeric_limits<double>::infinity();

void keep_top_k(Index k, std::vector<double>& scores) {
  if (k == 0 || k >= std::ssize(scores)) return;
  std::vector<double> sorted = scores;
  const auto kth = sorted.begin() + (k - 1);
  std::ranges::nth_element(sorted, kth, std::greater<>());
  const double least = *kth;
  for (double& x : scores) {
    if (x < least) x = kLowest;
  }
}

/// From the least likely on, tokens are out while their sum is at most 1 − p.
void keep_top_p(double p, std::vector<double>& probabilities) {
  if (p >= 1) return;
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return probabilities[i]; });
  double sum = 0;
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    sum += probabilities[order[i]];
    if (sum > 1 - p) break;
    probabilities[order[i]] = 0;
  }
}

void scale_to_one(std::vector<double>& probabilities) {
  double sum = 0;
  for (const double x : probabilities) sum += x;
  for (double& x : probabilities) x /= sum;
}

/// −Σ p log p.
double entropy_of(std::span<const double> probabilities) {
  double sum = 0;
  for (const double p : probabilities) {
    if (p > 0) sum -= p * std::log(p);
  }
  return sum;
}

/// Tokens below `least` are out, but not the most probable ones.
void keep_from(double least, std::vector<double>& probabilities) {
  const double most = *std::ranges::max_element(probabilities);
  for (double& p : probabilities) {
    if (p < least && p < most) p = 0;
  }
}

/// From the most typical on, tokens are kept until their sum is `mass`.
void keep_typical(double mass, std::vector<double>& probabilities) {
  const double entropy = entropy_of(probabilities);
  const auto distance = [&](double p) { return std::abs(-std::log(p) - entropy); };
  std::vector<double> order;
  for (const double p : probabilities) {
    if (p > 0) order.push_back(p);
  }
  std::ranges::stable_sort(order, {}, distance);
  double sum = 0, farthest = 0;
  for (const double p : order) {
    farthest = distance(p);
    sum += p;
    if (sum >= mass) break;
  }
  for (double& p : probabilities) {
    if (p > 0 && distance(p) > farthest) p = 0;
  }
}

}  // namespace

std::vector<double> sampling_probabilities(std::span<const double> logits,
                                           const SamplingOptions& options) {
  MASQUE_CHECK(!logits.empty() && options.temperature > 0 && options.top_k >= 0);
  std::vector<double> out(logits.begin(), logits.end());
  for (double& x : out) x /= options.temperature;
  keep_top_k(options.top_k, out);
  const kernel::LogSum total = log_sum(out);
  for (double& x : out) x = std::exp(x - total);
  keep_top_p(options.top_p, out);
  scale_to_one(out);
  if (options.min_p > 0) {
    keep_from(options.min_p * *std::ranges::max_element(out), out);
    scale_to_one(out);
  }
  if (options.typical_p < 1) {
    keep_typical(options.typical_p, out);
    scale_to_one(out);
  }
  if (options.epsilon_cutoff > 0) {
    keep_from(options.epsilon_cutoff, out);
    scale_to_one(out);
  }
  if (options.eta_cutoff > 0) {
    const double eta = options.eta_cutoff;
    keep_from(std::min(eta, std::sqrt(eta) * std::exp(-entropy_of(out))), out);
    scale_to_one(out);
  }
  return out;
}

TokenId choose_token(std::span<const double> logits, const SamplingOptions& options,
                     double uniform) {
  if (!options.do_sample)
    return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
  const std::vector<double> probabilities = sampling_probabilities(logits, options);
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    if (probabilities[i] == 0) continue;
    last = i;
    sum += probabilities[i];
    if (sum > uniform) break;
  }
  return static_cast<TokenId>(last);
}

double uniform_at(const RandomStream& stream, Index sample, Index place) {
  const PhiloxBlock words =
      stream.block(static_cast<std::uint64_t>(sample) << 32 | static_cast<std::uint64_t>(place));
  const std::uint64_t bits = (words[0] | std::uint64_t{words[1]} << 32) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace masque::evaluate
