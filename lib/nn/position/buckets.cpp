#include "nn/position/buckets.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

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

Index disentangled_bucket(Index distance, Index buckets, Index max_distance) {
  const Index middle = buckets / 2;
  const Index length = std::abs(distance);
  if (buckets <= 0 || max_distance <= 0 || length <= middle) return distance;
  // In float, as the models were trained.
  const auto ratio = [&](Index x) {
    return std::log(static_cast<float>(static_cast<double>(x) / static_cast<double>(middle)));
  };
  const float step =
      std::ceil(ratio(length) / ratio(max_distance - 1) * static_cast<float>(middle - 1));
  const Index bucket = static_cast<Index>(step) + middle;
  return distance < 0 ? -bucket : bucket;
}

}  // namespace masque::nn
