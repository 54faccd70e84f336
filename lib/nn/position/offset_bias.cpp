#include "nn/position/offset_bias.hpp"

#include <algorithm>
#include <complex>

namespace masque::nn {

namespace {

template <class T>
using Value = std::function<T(Index head, Index offset)>;

template <class T>
class OffsetHead final : public HeadBias<T> {
 public:
  OffsetHead(Index head, const Value<T>& value, const PositionIds& positions, bool dense)
      : head_(head),
        value_(value),
        positions_(positions),
        consecutive_(consecutive(positions.keys)) {
    if (!dense) return;
    const OffsetBounds bounds = offset_bounds(positions);
    least_ = bounds.least;
    table_.reserve(static_cast<std::size_t>(bounds.count()));
    for (Index o = bounds.least; o <= bounds.most; ++o) table_.push_back(value(head, o));
  }

  void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const override {
    for (Index i = 0; i < queries.size(); ++i) {
      const Index query = positions_.queries[static_cast<std::size_t>(queries.begin + i)];
      add_row(query, keys, scores.row(i));
    }
  }

 private:
  void add_row(Index query, mask::Range keys, T* row) const {
    const Index* key = positions_.keys.data() + keys.begin;
    const Index count = keys.size();
    if (table_.empty()) {
      for (Index j = 0; j < count; ++j) row[j] += value_(head_, key[j] - query);
    } else if (consecutive_) {
      const T* from = table_.data() + (key[0] - query - least_);
      for (Index j = 0; j < count; ++j) row[j] += from[j];
    } else {
      const Index shift = query + least_;
      for (Index j = 0; j < count; ++j) row[j] += table_[static_cast<std::size_t>(key[j] - shift)];
    }
  }

  Index head_;
  const Value<T>& value_;
  PositionIds positions_;
  bool consecutive_;
  Index least_ = 0;
  std::vector<T> table_;
};

template <class T>
class OffsetBias final : public ScoreBias<T> {
 public:
  OffsetBias(Value<T> value, const PositionIds& positions)
      : value_(std::move(value)),
        positions_(positions),
        dense_(worth_a_table(offset_bounds(positions), positions)) {}

  std::unique_ptr<HeadBias<T>> head(Index head, MatrixView<const T> /*query*/,
                                    MatrixView<const T> /*key*/) const override {
    return std::make_unique<OffsetHead<T>>(head, value_, positions_, dense_);
  }

 private:
  Value<T> value_;
  PositionIds positions_;
  bool dense_;
};

}  // namespace

OffsetBounds offset_bounds(const PositionIds& positions) {
  const auto [q_least, q_most] =
      std::minmax_element(positions.queries.begin(), positions.queries.end());
  const auto [k_least, k_most] = std::minmax_element(positions.keys.begin(), positions.keys.end());
  if (positions.queries.empty() || positions.keys.empty()) return {0, -1};
  return {*k_least - *q_most, *k_most - *q_least};
}

bool consecutive(std::span<const Index> positions) {
  for (std::size_t i = 1; i < positions.size(); ++i) {
    if (positions[i] != positions[i - 1] + 1) return false;
  }
  return true;
}

bool worth_a_table(const OffsetBounds& bounds, const PositionIds& positions) {
  const std::size_t number = positions.queries.size() + positions.keys.size();
  return bounds.count() <= 4 * static_cast<Index>(number);
}

template <class T>
std::unique_ptr<ScoreBias<T>> offset_bias(std::function<T(Index head, Index offset)> value,
                                          PositionIds positions) {
  return std::make_unique<OffsetBias<T>>(std::move(value), positions);
}

template std::unique_ptr<ScoreBias<float>> offset_bias(Value<float>, PositionIds);
template std::unique_ptr<ScoreBias<double>> offset_bias(Value<double>, PositionIds);
template std::unique_ptr<ScoreBias<std::complex<double>>> offset_bias(Value<std::complex<double>>,
                                                                      PositionIds);

}  // namespace masque::nn
