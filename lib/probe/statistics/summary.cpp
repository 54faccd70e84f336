#include "probe/statistics/summary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "probe/statistics/student.hpp"

namespace masque::probe {

namespace {

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

}  // namespace masque::probe
