#include <algorithm>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "nn/position/offset_bias.hpp"

namespace masque::nn {

Index t5_bucket(Index offset, Index buckets, Index max_distance, bool bidirectional) {
  Index first = 0;
  Index distance = std::max<Index>(-offset, 0);
  if (bidirectional) {
    buckets /= 2;
    if (offset > 0) first = buckets;
    distance = std::abs(offset);
  }
  const Index exact = buckets / 2;
  if (distance < exact) return first + distance;
  // In float, as the models were trained.
  const float ratio =
      std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const auto step = static_cast<Index>(ratio * static_cast<float>(buckets - exact));
  return first + std::min(exact + step, buckets - 1);
}

template <class T>
std::unique_ptr<ScoreBias<T>> t5_bias(MatrixView<const T> table, Index max_distance,
                                      bool bidirectional, PositionIds places) {
  MASQUE_CHECK(table.rows >= 4 && max_distance > table.rows / 4);
  // From `farthest` on everything lies in the last bucket.
  const Index farthest = std::max(max_distance, table.rows);
  std::vector<Index> buckets;
  buckets.reserve(static_cast<std::size_t>(2 * farthest + 1));
  for (Index offset = -farthest; offset <= farthest; ++offset) {
    buckets.push_back(t5_bucket(offset, table.rows, max_distance, bidirectional));
  }
  return offset_bias<T>(
      [=, buckets = std::move(buckets)](Index head, Index offset) {
        const Index at = std::clamp(offset, -farthest, farthest) + farthest;
        return table.at(buckets[static_cast<std::size_t>(at)], head);
      },
      places);
}

template std::unique_ptr<ScoreBias<float>> t5_bias(MatrixView<const float>, Index, bool,
                                                   PositionIds);
template std::unique_ptr<ScoreBias<double>> t5_bias(MatrixView<const double>, Index, bool,
                                                    PositionIds);
template std::unique_ptr<ScoreBias<std::complex<double>>> t5_bias(
    MatrixView<const std::complex<double>>, Index, bool, PositionIds);

}  // namespace masque::nn
