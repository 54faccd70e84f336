// Masks that compare a number of the query with one of the key.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "base/vectorize.hpp"
#include "mask/builtin.hpp"

namespace masque::mask {

namespace {

using Values = std::vector<std::int32_t>;

Values narrowed(const std::vector<Index>& values) {
  Values out;
  out.reserve(values.size());
  for (const Index value : values) {
    MASQUE_CHECK(std::abs(value) < INT32_MAX);
    out.push_back(static_cast<std::int32_t>(value));
  }
  return out;
}

/// Smallest and largest value of any range: of runs of 64 by a table of powers of two, of the ends
/// by a scan.
class Extremes {
 public:
  using Pair = std::pair<std::int32_t, std::int32_t>;

  explicit Extremes(const Values& values) : values_(values) {
    std::vector<Pair> runs;
    for (std::size_t begin = 0; begin + kRun <= values.size(); begin += kRun) {
      runs.push_back(scan(begin, begin + kRun));
    }
    levels_.push_back(std::move(runs));
    for (std::size_t width = 1; 2 * width <= levels_.front().size(); width *= 2) {
      std::vector<Pair> level;
      const std::vector<Pair>& below = levels_.back();
      for (std::size_t i = 0; i + width < below.size(); ++i) {
        level.push_back(both(below[i], below[i + width]));
      }
      levels_.push_back(std::move(level));
    }
  }

  Pair of(Range range) const {
    const auto begin = static_cast<std::size_t>(range.begin);
    const auto end = static_cast<std::size_t>(range.end);
    const std::size_t first = (begin + kRun - 1) / kRun;
    const std::size_t last = end / kRun;
    if (first >= last) return scan(begin, end);
    std::size_t level = 0;
    while (std::size_t{2} << level <= last - first) ++level;
    const std::size_t width = std::size_t{1} << level;
    Pair found = both(levels_[level][first], levels_[level][last - width]);
    if (begin < first * kRun) found = both(found, scan(begin, first * kRun));
    return last * kRun < end ? both(found, scan(last * kRun, end)) : found;
  }

 private:
  static constexpr std::size_t kRun = 64;

  static Pair both(Pair a, Pair b) {
    return {std::min(a.first, b.first), std::max(a.second, b.second)};
  }

  Pair scan(std::size_t begin, std::size_t end) const {
    Pair found{values_[begin], values_[begin]};
    for (std::size_t i = begin + 1; i < end; ++i) found = both(found, {values_[i], values_[i]});
    return found;
  }

  const Values& values_;
  std::vector<std::vector<Pair>> levels_;
};

using Row64 = std::array<std::int32_t, 64>;

/// The bits of 64 rows side by side, half a row at a time: vectors of 32-bit lanes.
template <class Compare>
[[gnu::always_inline]] inline void compare_tile(const std::int32_t* queries,
                                                const std::int32_t* keys, Index n,
                                                std::uint64_t* out, Compare compare) {
  for (Index begin = 0; begin < 64; begin += 32) {
    std::uint32_t half[64] = {};
    const Index end = n < begin + 32 ? n : begin + 32;
    for (Index j = begin; j < end; ++j) {
      const std::int32_t key = keys[j];
      const std::uint32_t bit = std::uint32_t{1} << (j - begin);
      for (int i = 0; i < 64; ++i)
        half[i] |= (0U - static_cast<std::uint32_t>(compare(queries[i], key))) & bit;
    }
    for (int i = 0; i < 64; ++i) {
      out[i] = begin == 0 ? half[i] : out[i] | std::uint64_t{half[i]} << 32;
    }
  }
}

inline void equal_tile(const std::int32_t* queries, const std::int32_t* keys, Index n,
                       std::uint64_t* out) {
  compare_tile(queries, keys, n, out, [](std::int32_t q, std::int32_t k) { return q == k; });
}

inline void greater_tile(const std::int32_t* queries, const std::int32_t* keys, Index n,
                         std::uint64_t* out) {
  compare_tile(queries, keys, n, out, [](std::int32_t q, std::int32_t k) { return q >= k; });
}

/// What both have in common: a number of each query and of each key.
class ByValue : public MaskNode {
 public:
  ByValue(const std::vector<Index>& queries, const std::vector<Index>& keys)
      : queries_(narrowed(queries)),
        keys_(narrowed(keys)),
        of_queries_(queries_),
        of_keys_(keys_) {}

 protected:
  Row64 rows(Range q) const {
    Row64 out{};
    std::copy(queries_.begin() + q.begin, queries_.begin() + q.end, out.begin());
    return out;
  }

  Values queries_;
  Values keys_;
  Extremes of_queries_;
  Extremes of_keys_;
};

class SameGroup final : public ByValue {
 public:
  using ByValue::ByValue;
  bool allows(Index q, Index k) const override {
    return queries_[static_cast<std::size_t>(q)] == keys_[static_cast<std::size_t>(k)];
  }
  Cover cover(Range q, Range k) const override {
    const auto [low_q, high_q] = of_queries_.of(q);
    const auto [low_k, high_k] = of_keys_.of(k);
    if (high_q < low_k || high_k < low_q) return Cover::kEmpty;
    return low_q == high_q && low_k == high_k ? Cover::kFull : Cover::kPartial;
  }
  void tile(Range q, Range k, Tile& out) const override {
    vectorized<equal_tile>(rows(q).data(), keys_.data() + k.begin, k.size(), out.data());
  }
};

/// Ranks of queries are lowered by the margin, so that the comparison is plain.
class RankOrder final : public ByValue {
 public:
  using ByValue::ByValue;
  bool allows(Index q, Index k) const override {
    return queries_[static_cast<std::size_t>(q)] >= keys_[static_cast<std::size_t>(k)];
  }
  Cover cover(Range q, Range k) const override {
    const auto [low_q, high_q] = of_queries_.of(q);
    const auto [low_k, high_k] = of_keys_.of(k);
    if (high_k <= low_q) return Cover::kFull;
    return low_k > high_q ? Cover::kEmpty : Cover::kPartial;
  }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    const std::int32_t limit = queries_[static_cast<std::size_t>(q)];
    const std::int32_t* keys = keys_.data() + k0;
    std::uint64_t found = 0;
    for (int i = 0; i < n; ++i) found |= std::uint64_t{keys[i] <= limit} << i;
    return found;
  }
  void tile(Range q, Range k, Tile& out) const override {
    vectorized<greater_tile>(rows(q).data(), keys_.data() + k.begin, k.size(), out.data());
  }
};

template <class Node>
Mask by_value(const std::vector<Index>& queries, const std::vector<Index>& keys) {
  return {std::make_shared<Node>(queries, keys),
          {static_cast<Index>(queries.size()), static_cast<Index>(keys.size())}};
}

}  // namespace

Mask same_group(const std::vector<Index>& query_groups, const std::vector<Index>& key_groups) {
  return by_value<SameGroup>(query_groups, key_groups);
}

Mask rank_order(std::vector<Index> query_ranks, const std::vector<Index>& key_ranks, Index margin) {
  for (Index& rank : query_ranks) rank -= margin;
  return by_value<RankOrder>(query_ranks, key_ranks);
}

}  // namespace masque::mask
