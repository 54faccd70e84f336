#include "evaluate/statistics/correlation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace masque::evaluate {

std::vector<double> ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    for (std::size_t i = begin; i < end; ++i) out[order[i]] = rank;
    begin = end;
  }
  return out;
}

double pearson(std::span<const double> x, std::span<const double> y) {
  MASQUE_CHECK(x.size() == y.size());
  const auto n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x;
    const double dy = y[i] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  if (x.size() < 2 || xx == 0 || yy == 0) return std::numeric_limits<double>::quiet_NaN();
  return xy / std::sqrt(xx * yy);
}

double spearman(std::span<const double> x, std::span<const double> y) {
  return pearson(ranks(x), ranks(y));
}

}  // namespace masque::evaluate
