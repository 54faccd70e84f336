#include <algorithm>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "nn/position/bias_terms.hpp"
#include "nn/position/score_terms.hpp"

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

namespace {

/// The buckets of all offsets, each found once.
class Buckets {
 public:
  Buckets(Index count, Index max_distance, bool bidirectional)
      // From there on everything lies in the last bucket.
      : farthest_(std::max(max_distance, count)) {
    MASQUE_CHECK(count >= 4 && max_distance > count / 4);
    table_.reserve(static_cast<std::size_t>(2 * farthest_ + 1));
    for (Index offset = -farthest_; offset <= farthest_; ++offset)
      table_.push_back(t5_bucket(offset, count, max_distance, bidirectional));
  }
  Index of(Index offset) const {
    return table_[static_cast<std::size_t>(std::clamp(offset, -farthest_, farthest_) + farthest_)];
  }

 private:
  Index farthest_;
  std::vector<Index> table_;
};

}  // namespace

template <class T>
std::unique_ptr<PositionTerms<T>> t5_terms(MatrixView<const T> table, MatrixView<T> d_table,
                                           Index max_distance, bool bidirectional,
                                           PositionIds positions) {
  const auto buckets = std::make_shared<const Buckets>(table.rows, max_distance, bidirectional);
  typename OffsetTerms<T>::Slope slope;
  if (d_table.data != nullptr) {
    slope = [=](Index head, Index offset, const T& d) {
      d_table.at(buckets->of(offset), head) += d;
    };
  }
  auto bias = offset_bias<T>(
      [=](Index head, Index offset) { return table.at(buckets->of(offset), head); }, positions);
  return std::make_unique<OffsetTerms<T>>(std::move(bias), positions, slope);
}

template std::unique_ptr<PositionTerms<float>> t5_terms(MatrixView<const float>, MatrixView<float>,
                                                        Index, bool, PositionIds);
template std::unique_ptr<PositionTerms<double>> t5_terms(MatrixView<const double>,
                                                         MatrixView<double>, Index, bool,
                                                         PositionIds);
template std::unique_ptr<PositionTerms<std::complex<double>>> t5_terms(
    MatrixView<const std::complex<double>>, MatrixView<std::complex<double>>, Index, bool,
    PositionIds);

}  // namespace masque::nn
