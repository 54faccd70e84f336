#include "probe/statistics/bootstrap.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"

namespace masque::probe {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Between order statistics ⌊h⌋ and ⌊h⌋ + 1 for h = p (n − 1); `sorted` is not empty.
double quantile(const std::vector<double>& sorted, double p) {
  const double h = p * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(h);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (h - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Interval mean_interval(std::span<const double> values, const BootstrapRequest& request) {
  const auto n = static_cast<Index>(values.size());
  std::vector<double> means(static_cast<std::size_t>(request.replicates));
  const RandomStream stream(request.seed, "bootstrap");
  for (std::size_t r = 0; r < means.size(); ++r) {
    Draw draw(stream.for_item(r));
    double sum = 0;
    for (Index i = 0; i < n; ++i) sum += values[static_cast<std::size_t>(draw.below(n))];
    means[r] = sum / static_cast<double>(n);
  }
  return percentile_interval(std::move(means), request.level);
}

}  // namespace

Interval percentile_interval(std::vector<double> replicates, double level) {
  MASQUE_CHECK(!replicates.empty() && level > 0 && level < 1);
  if (std::any_of(replicates.begin(), replicates.end(), [](double x) { return std::isnan(x); }))
    return {kNaN, kNaN};
  std::sort(replicates.begin(), replicates.end());
  return {quantile(replicates, (1 - level) / 2), quantile(replicates, (1 + level) / 2)};
}

Summary summarise(std::span<const double> values, const BootstrapRequest& request) {
  MASQUE_CHECK(!values.empty() && request.level > 0 && request.level < 1 && request.replicates > 0);
  Summary out;
  out.n = std::ssize(values);
  if (std::any_of(values.begin(), values.end(), [](double x) { return !std::isfinite(x); })) {
    out.mean = out.sd = kNaN;
    const bool none =
        std::any_of(values.begin(), values.end(), [](double x) { return std::isnan(x); });
    out.min = none ? kNaN : *std::min_element(values.begin(), values.end());
    out.max = none ? kNaN : *std::max_element(values.begin(), values.end());
    return out;
  }
  double sum = 0;
  for (const double x : values) sum += x;
  out.mean = sum / static_cast<double>(out.n);
  double squares = 0;
  for (const double x : values) squares += (x - out.mean) * (x - out.mean);
  out.sd = out.n > 1 ? std::sqrt(squares / static_cast<double>(out.n - 1)) : kNaN;
  out.min = *std::min_element(values.begin(), values.end());
  out.max = *std::max_element(values.begin(), values.end());
  if (out.n > 1) out.interval = mean_interval(values, request);
  return out;
}

}  // namespace masque::probe
