#include "nn/position/pair_rows.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "nn/position/offset_bias.hpp"

namespace masque::nn {

namespace {

class DistanceRows final : public PairRows {
 public:
  DistanceRows(const PositionIds& positions, std::function<Index(Index)> row)
      : positions_(positions), row_(std::move(row)) {
    if (positions.queries.empty() || positions.keys.empty()) return;
    const OffsetBounds bounds = offset_bounds(positions);
    if (!worth_a_table(bounds, positions)) return;
    least_ = bounds.least;
    table_.reserve(static_cast<std::size_t>(bounds.count()));
    for (Index offset = bounds.least; offset <= bounds.most; ++offset)
      table_.push_back(static_cast<std::int32_t>(row_(-offset)));
  }

  void fill(mask::Range queries, mask::Range keys, std::int32_t* out) const override {
    for (Index i = queries.begin; i < queries.end; ++i) {
      const Index query = positions_.queries[static_cast<std::size_t>(i)];
      const Index* const key = positions_.keys.data() + keys.begin;
      if (table_.empty()) {
        for (Index j = 0; j < keys.size(); ++j)
          out[j] = static_cast<std::int32_t>(row_(query - key[j]));
      } else {
        const Index shift = query + least_;
        for (Index j = 0; j < keys.size(); ++j)
          out[j] = table_[static_cast<std::size_t>(key[j] - shift)];
      }
      out += keys.size();
    }
  }

 private:
  PositionIds positions_;
  std::function<Index(Index)> row_;
  Index least_ = 0;
  std::vector<std::int32_t> table_;  ///< of key − query, from least_ on
};

class SegmentRows final : public PairRows {
 public:
  SegmentRows(std::span<const Index> queries, std::span<const Index> keys)
      : queries_(queries), keys_(keys) {}

  void fill(mask::Range queries, mask::Range keys, std::int32_t* out) const override {
    if (queries_.empty()) {
      std::fill_n(out, queries.size() * keys.size(), 0);
      return;
    }
    for (Index i = queries.begin; i < queries.end; ++i) {
      const Index segment = queries_[static_cast<std::size_t>(i)];
      for (Index j = keys.begin; j < keys.end; ++j)
        *out++ = keys_[static_cast<std::size_t>(j)] == segment ? 0 : 1;
    }
  }

 private:
  std::span<const Index> queries_;
  std::span<const Index> keys_;
};

}  // namespace

std::shared_ptr<const PairRows> distance_rows(const PositionIds& positions,
                                              std::function<Index(Index distance)> row) {
  return std::make_shared<const DistanceRows>(positions, std::move(row));
}

std::shared_ptr<const PairRows> segment_rows(std::span<const Index> queries,
                                             std::span<const Index> keys) {
  return std::make_shared<const SegmentRows>(queries, keys);
}

}  // namespace masque::nn
