#include "probe/states/state_collapse.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace masque::probe {

namespace {

template <class T>
StateCollapse collapse(MatrixView<const T> x) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto width = static_cast<std::size_t>(x.columns);
  std::vector<double> mean(width, 0.0);
  std::vector<double> directions(width, 0.0);
  double squares = 0;
  double count = 0;
  for (Index i = 0; i < x.rows; ++i) {
    const T* row = x.row(i);
    // Four chains, added in a fixed order.
    double parts[4] = {};
    for (std::size_t c = 0; c < width; ++c) {
      const auto value = static_cast<double>(row[c]);
      parts[c % 4] += value * value;
      mean[c] += value;
    }
    const double own = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    squares += own;
    if (!(own > 0)) continue;
    ++count;
    const double factor = 1 / std::sqrt(own);
    for (std::size_t c = 0; c < width; ++c) directions[c] += static_cast<double>(row[c]) * factor;
  }
  double away = 0;
  for (std::size_t c = 0; c < width; ++c) mean[c] /= static_cast<double>(x.rows);
  for (Index i = 0; i < x.rows; ++i) {
    const T* row = x.row(i);
    double parts[4] = {};
    for (std::size_t c = 0; c < width; ++c) {
      const double difference = static_cast<double>(row[c]) - mean[c];
      parts[c % 4] += difference * difference;
    }
    away += (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
  double together = 0;
  for (const double d : directions) together += d * d;
  return {squares > 0 ? std::sqrt(away / squares) : kNone,
          count > 1 ? (together - count) / (count * (count - 1)) : kNone};
}

}  // namespace

StateCollapse state_collapse(MatrixView<const float> x) { return collapse(x); }
StateCollapse state_collapse(MatrixView<const double> x) { return collapse(x); }

}  // namespace masque::probe
