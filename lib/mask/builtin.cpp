#include "mask/builtin.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "base/processor/vectorize.hpp"
#include "base/random/random.hpp"

namespace masque::mask {

namespace {

// Masks that compare a number of the query with one of the key.

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
    const std::size_t first = divide_up(begin, kRun);
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

// Masks by distance, chunk, key, row and chance.

/// Cover from the two ends of a quantity that takes every whole value in between: visible where it
/// is in [lo, hi].
Cover cover_of(Index smallest, Index largest, Index lo, Index hi) {
  if (largest < lo || smallest > hi) return Cover::kEmpty;
  return smallest >= lo && largest <= hi ? Cover::kFull : Cover::kPartial;
}

/// `tile` by the `bits` of a known class, which the compiler can look into.
template <class Node>
void tile_of_bits(const Node& node, Range q, Range k, Tile& out) {
  const int n = static_cast<int>(k.size());
  for (Index row = q.begin; row < q.end; ++row) {
    out[static_cast<std::size_t>(row - q.begin)] = node.Node::bits(row, k.begin, n);
  }
}

class Band final : public MaskNode {
 public:
  Band(Index lo, Index hi, Index offset) : lo_(lo), hi_(hi), offset_(offset) {}
  bool allows(Index q, Index k) const override {
    const Index d = q + offset_ - k;
    return d >= lo_ && d <= hi_;
  }
  Cover cover(Range q, Range k) const override {
    return cover_of(q.begin + offset_ - k.end + 1, q.end - 1 + offset_ - k.begin, lo_, hi_);
  }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    return range_bits(q + offset_ - hi_, q + offset_ - lo_ + 1, k0, n);
  }
  void tile(Range q, Range k, Tile& out) const override { tile_of_bits(*this, q, k, out); }

 private:
  Index lo_;
  Index hi_;
  Index offset_;
};

Index floor_mod(Index a, Index b) {
  const Index r = a % b;
  return r < 0 ? r + b : r;
}

class Modular final : public MaskNode {
 public:
  Modular(Index period, Index offset) : period_(period), offset_(offset) {
    for (Index i = 0; i < 64; i += period) every_ |= std::uint64_t{1} << i;
  }
  bool allows(Index q, Index k) const override { return floor_mod(q + offset_ - k, period_) == 0; }
  Cover cover(Range q, Range k) const override {
    if (period_ == 1) return Cover::kFull;
    const Index smallest = q.begin + offset_ - k.end + 1;
    const Index largest = q.end - 1 + offset_ - k.begin;
    const Index first = smallest + floor_mod(-smallest, period_);  // first multiple from there on
    if (first > largest) return Cover::kEmpty;
    return smallest == largest ? Cover::kFull : Cover::kPartial;
  }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    const Index first = floor_mod(q + offset_ - k0, period_);
    return first < n ? every_ << first & low_bits(n) : 0;
  }
  void tile(Range q, Range k, Tile& out) const override {
    const std::uint64_t all = low_bits(k.size());
    Index first = floor_mod(q.begin + offset_ - k.begin, period_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(q.size()); ++i) {
      out[i] = first < 64 ? every_ << first & all : 0;
      if (++first == period_) first = 0;
    }
  }

 private:
  Index period_;
  Index offset_;
  std::uint64_t every_ = 0;  ///< multiples of the period
};

class ChunkBand final : public MaskNode {
 public:
  ChunkBand(Index c, Index lo, Index hi, Index offset, Index key_offset)
      : c_(c), lo_(lo), hi_(hi), offset_(offset), key_offset_(key_offset) {}
  bool allows(Index q, Index k) const override {
    const Index d = of_query(q) - of_key(k);
    return d >= lo_ && d <= hi_;
  }
  Cover cover(Range q, Range k) const override {
    return cover_of(of_query(q.begin) - of_key(k.end - 1), of_query(q.end - 1) - of_key(k.begin),
                    lo_, hi_);
  }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    const Index chunk = of_query(q);
    return range_bits((chunk - hi_) * c_, (chunk - lo_ + 1) * c_, k0 + key_offset_, n);
  }
  void tile(Range q, Range k, Tile& out) const override { tile_of_bits(*this, q, k, out); }

 private:
  Index of_query(Index q) const { return (q + offset_) / c_; }
  Index of_key(Index k) const { return (k + key_offset_) / c_; }

  Index c_;
  Index lo_;
  Index hi_;
  Index offset_;
  Index key_offset_;
};

/// Flags with the number of set ones before each place.
class Flags {
 public:
  explicit Flags(const std::vector<bool>& flags) : before_(flags.size() + 1, 0) {
    for (std::size_t i = 0; i < flags.size(); ++i) before_[i + 1] = before_[i] + (flags[i] ? 1 : 0);
  }
  bool get(Index i) const {
    const auto at = static_cast<std::size_t>(i);
    return before_[at + 1] != before_[at];
  }
  Cover cover(Range range) const {
    const Index count = before_[static_cast<std::size_t>(range.end)] -
                        before_[static_cast<std::size_t>(range.begin)];
    return count == 0 ? Cover::kEmpty : count == range.size() ? Cover::kFull : Cover::kPartial;
  }

 private:
  std::vector<Index> before_;
};

class Columns final : public MaskNode {
 public:
  explicit Columns(const std::vector<bool>& flags) : flags_(flags) {
    for (std::size_t i = 0; i < flags.size(); i += 64) {
      std::uint64_t word = 0;
      for (std::size_t j = i; j < std::min(i + 64, flags.size()); ++j) {
        word |= std::uint64_t{flags[j]} << (j - i);
      }
      words_.push_back(word);
    }
    words_.push_back(0);
  }
  bool allows(Index, Index k) const override { return flags_.get(k); }
  Cover cover(Range, Range k) const override { return flags_.cover(k); }
  std::uint64_t bits(Index, Index k0, int n) const override {
    const auto word = static_cast<std::size_t>(k0 / 64);
    const int shift = static_cast<int>(k0 % 64);
    std::uint64_t found = words_[word] >> shift;
    if (shift > 0) found |= words_[word + 1] << (64 - shift);
    return found & low_bits(n);
  }
  void tile(Range q, Range k, Tile& out) const override {
    const std::uint64_t word = bits(0, k.begin, static_cast<int>(k.size()));
    std::fill(out.begin(), out.begin() + q.size(), word);
  }

 private:
  Flags flags_;
  std::vector<std::uint64_t> words_;
};

class Rows final : public MaskNode {
 public:
  explicit Rows(const std::vector<bool>& flags) : flags_(flags) {}
  bool allows(Index q, Index) const override { return flags_.get(q); }
  Cover cover(Range q, Range) const override { return flags_.cover(q); }
  std::uint64_t bits(Index q, Index, int n) const override {
    return flags_.get(q) ? low_bits(n) : 0;
  }
  void tile(Range q, Range k, Tile& out) const override { tile_of_bits(*this, q, k, out); }

 private:
  Flags flags_;
};

class RandomPairs final : public MaskNode {
 public:
  RandomPairs(Lengths lengths, double p, std::uint64_t seed)
      : stream_(seed, "mask random"),
        blocks_per_row_((static_cast<std::uint64_t>(lengths.keys) + 3) / 4),
        threshold_(static_cast<std::uint64_t>(std::llround(p * 0x1p32))) {}
  bool allows(Index q, Index k) const override { return bits(q, k, 1) != 0; }
  std::uint64_t bits(Index q, Index k0, int n) const override {
    std::uint64_t found = 0;
    for (int i = 0; i < n;) {  // four cells a block
      const auto k = static_cast<std::uint64_t>(k0 + i);
      const PhiloxBlock words =
          stream_.block(static_cast<std::uint64_t>(q) * blocks_per_row_ + k / 4);
      for (std::size_t j = k % 4; j < 4 && i < n; ++j, ++i) {
        found |= std::uint64_t{words[j] < threshold_} << i;
      }
    }
    return found;
  }

 private:
  RandomStream stream_;
  std::uint64_t blocks_per_row_;
  std::uint64_t threshold_;
};

class BlownUp final : public MaskNode {
 public:
  BlownUp(Mask blocks, Index size) : blocks_(std::move(blocks)), size_(size) {}
  bool allows(Index q, Index k) const override { return blocks_.allows(q / size_, k / size_); }
  Cover cover(Range q, Range k) const override {
    return blocks_.cover({q.begin / size_, (q.end - 1) / size_ + 1},
                         {k.begin / size_, (k.end - 1) / size_ + 1});
  }

 private:
  Mask blocks_;
  Index size_;
};

}  // namespace

Mask same_group(const std::vector<Index>& query_groups, const std::vector<Index>& key_groups) {
  return by_value<SameGroup>(query_groups, key_groups);
}

Mask rank_order(std::vector<Index> query_ranks, const std::vector<Index>& key_ranks, Index margin) {
  for (Index& rank : query_ranks) rank -= margin;
  return by_value<RankOrder>(query_ranks, key_ranks);
}

Mask band(Lengths lengths, Index lo, Index hi, Index offset) {
  return {std::make_shared<Band>(lo, hi, offset), lengths};
}

Mask modular(Lengths lengths, Index period, Index offset) {
  return {std::make_shared<Modular>(period, offset), lengths};
}

Mask chunk_band(Lengths lengths, Index c, Index lo, Index hi, Index offset, Index key_offset) {
  // Differences of chunks that there are: sums of chunks stay within the numbers.
  const Index least = -((lengths.keys + key_offset) / c + 1);
  const Index most = (lengths.queries + offset) / c + 1;
  return {
      std::make_shared<ChunkBand>(c, std::max(lo, least), std::min(hi, most), offset, key_offset),
      lengths};
}

Mask columns(Lengths lengths, const std::vector<bool>& visible) {
  MASQUE_CHECK(static_cast<Index>(visible.size()) == lengths.keys);
  return {std::make_shared<Columns>(visible), lengths};
}

Mask rows(Lengths lengths, const std::vector<bool>& readers) {
  MASQUE_CHECK(static_cast<Index>(readers.size()) == lengths.queries);
  return {std::make_shared<Rows>(readers), lengths};
}

Mask random_pairs(Lengths lengths, double p, std::uint64_t seed) {
  return {std::make_shared<RandomPairs>(lengths, p, seed), lengths};
}

Mask blown_up(Lengths lengths, Mask blocks, Index size) {
  return {std::make_shared<BlownUp>(std::move(blocks), size), lengths};
}

}  // namespace masque::mask
