#include "evaluate/statistics/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

/// Beyond these degrees of freedom the error of the expansion is less than 10⁻¹¹.
constexpr Index kMostSummed = 2000;

/// Where `is_below`, true up to it, becomes false between 0 and `most`.
template <class Function>
double root(double most, const Function& is_below) {
  double low = 0;
  double high = most;
  for (int step = 0; step < 64; ++step) {
    const double middle = low + (high - low) / 2;
    (is_below(middle) ? low : high) = middle;
  }
  return low + (high - low) / 2;
}

/// The probability as a function of the angle atan(t / √freedom), which is bounded.
double probability_of_angle(double angle, Index freedom) {
  const double sine = std::sin(angle);
  const double cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double sum = 0;
  double term = odd ? cosine : 1;  // of cos^k, from k = 1 or 0 to freedom − 2
  for (Index k = odd ? 1 : 0; k <= freedom - 2 && term > sum * 1e-18; k += 2) {
    sum += term;
    term *= cosine * cosine * static_cast<double>(k + 1) / static_cast<double>(k + 2);
  }
  return odd ? (angle + sine * sum) * 2 / std::numbers::pi : sine * sum;
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Summary summarise(std::span<const double> values, double level) {
  MASQUE_CHECK(!values.empty() && level > 0 && level < 1);
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
  if (out.n > 1) {
    const double half =
        student_quantile(level, out.n - 1) * out.sd / std::sqrt(static_cast<double>(out.n));
    out.interval = {out.mean - half, out.mean + half};
  }
  return out;
}

double student_probability(double t, Index freedom) {
  MASQUE_CHECK(t >= 0 && freedom >= 1);
  return probability_of_angle(std::atan(t / std::sqrt(static_cast<double>(freedom))), freedom);
}

double student_quantile(double level, Index freedom) {
  MASQUE_CHECK(level > 0 && level < 1 && freedom >= 1);
  const auto n = static_cast<double>(freedom);
  if (freedom > kMostSummed) {
    const double z = normal_quantile(level);
    const double z3 = z * z * z;
    const double z5 = z3 * z * z;
    const double z7 = z5 * z * z;
    return z + (z3 + z) / (4 * n) + (5 * z5 + 16 * z3 + 3 * z) / (96 * n * n) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * n * n * n);
  }
  const double angle = root(std::numbers::pi / 2,
                            [&](double x) { return probability_of_angle(x, freedom) < level; });
  return std::tan(angle) * std::sqrt(n);
}

double normal_quantile(double level) {
  MASQUE_CHECK(level > 0 && level < 1);
  // erfc keeps its digits where erf is nearly 1.
  return root(40, [&](double x) { return std::erfc(x / std::numbers::sqrt2) > 1 - level; });
}

}  // namespace masque::evaluate
