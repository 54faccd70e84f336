#include "evaluate/attention/attention_head.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace masque::evaluate {

namespace {

std::vector<float> padded_marks(std::span<const std::uint8_t> marks, Index n) {
  std::vector<float> out(static_cast<std::size_t>(padded(n)), 0.0F);
  for (std::size_t i = 0; i < marks.size(); ++i) out[i] = marks[i] != 0 ? 1.0F : 0.0F;
  return out;
}

/// Memory of a thread.
struct HeadMemory {
  std::vector<float> buffer, sums, counts, squares;
  std::vector<RowSums> rows;
  std::vector<RowSpreads> spreads;
  std::vector<double> values;

  void resize(Index n, Index keys) {
    const auto width = static_cast<std::size_t>(padded(keys));
    for (auto* each : {&buffer, &sums, &counts, &squares}) each->resize(width);
    rows.resize(static_cast<std::size_t>(n));
    spreads.resize(static_cast<std::size_t>(n));
  }
};

/// Mean and population variance.
struct Spread {
  double mean = 0;
  double deviation = 0;
};

Spread spread_of(std::span<const double> values) {
  const Moments m = moments_of(values);
  return {m.mean, std::sqrt(m.sum_squares / static_cast<double>(m.n))};
}

class Measure {
 public:
  Measure(const HeadMap& head, const SentenceFacts& facts, HeadMemory& scratch)
      : head_(head), facts_(facts), s_(scratch), n_(head.map.rows), keys_(facts.size()) {
    for (Index i = 0; i < n_; ++i) kept_rows_ += kept(i) ? 1 : 0;
  }

  HeadSample run(const HeadThresholds& thresholds, std::span<float> entropy) {
    s_.resize(n_, keys_);
    sum_rows(head_.map, facts_.columns(), static_cast<float>(thresholds.sink), s_.buffer.data(),
             s_.rows.data(), s_.sums.data(), s_.counts.data());
    for (Index i = 0; i < n_; ++i) entropy[at(i)] = row(i).entropy;
    partition();
    if (kept_rows_ == 0) return sample_;
    for (float& sum : s_.sums) sum /= static_cast<float>(kept_rows_);
    sum_spreads(head_.map, facts_.columns(), s_.rows.data(), s_.sums.data(), head_.mass.data(),
                s_.spreads.data(), s_.squares.data());
    shape();
    places();
    if (!head_.of_source) {
      distances();
      near(thresholds.near);
      repeats();
    }
    diversity();
    return sample_;
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  bool kept(Index i) const { return head_.mass[at(i)] > 0; }
  const RowSums& row(Index i) const { return s_.rows[at(i)]; }
  double visible(Index i) const { return static_cast<double>(head_.visible[at(i)]); }

  /// value(i) of the kept rows in [first, end) for which it is not NaN.
  template <class Value>
  Moments moments(Index first, Index end, const Value& value) {
    s_.values.clear();
    for (Index i = first; i < end; ++i) {
      if (!kept(i)) continue;
      const double x = value(i);
      if (!std::isnan(x)) s_.values.push_back(x);
    }
    return moments_of(s_.values);
  }
  template <class Value>
  void rows(HeadField field, Index first, Index end, const Value& value) {
    sample_[field] = moments(first, end, value);
  }
  template <class Value>
  void rows(HeadField field, const Value& value) {
    rows(field, 0, n_, value);
  }

  void shape() {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    rows(HeadField::kEntropy, [&](Index i) { return row(i).entropy; });
    rows(HeadField::kEntropyRelative, [&](Index i) {
      return head_.visible[at(i)] > 1 ? row(i).entropy / std::log(visible(i)) : kNone;
    });
    rows(HeadField::kSupport,
         [&](Index i) { return std::exp(static_cast<double>(row(i).entropy)); });
    rows(HeadField::kMaxWeight, [&](Index i) { return row(i).largest; });
    rows(HeadField::kSparsity, [&](Index i) { return 1 / (visible(i) * row(i).squares); });
  }

  void distances() {
    const MatrixView<const float>& p = head_.map;
    rows(HeadField::kDistance, [&](Index i) { return row(i).distance; });
    rows(HeadField::kOffset, [&](Index i) { return row(i).offset; });
    rows(HeadField::kDistanceSpread,
         [&](Index i) { return std::sqrt(static_cast<double>(s_.spreads[at(i)].distance)); });
    rows(HeadField::kOffsetSpread,
         [&](Index i) { return std::sqrt(static_cast<double>(s_.spreads[at(i)].offset)); });
    rows(HeadField::kDiagonal, [&](Index i) { return p.at(i, i); });
    rows(HeadField::kPrevious, 1, n_, [&](Index i) { return p.at(i, i - 1); });
    rows(HeadField::kNext, 0, n_ - 1, [&](Index i) { return p.at(i, i + 1); });
  }

  void places() {
    const MatrixView<const float>& p = head_.map;
    rows(HeadField::kFirst, [&](Index i) { return p.at(i, 0); });
    rows(HeadField::kLast, [&](Index i) { return p.at(i, keys_ - 1); });
    for (const std::vector<Index>& places : facts_.places())
      sample_.tokens.push_back(moments(0, n_, [&](Index i) { return mass_on(i, places); }));
    if (facts_.knows_special()) rows(HeadField::kSpecial, [&](Index i) { return row(i).special; });
    if (facts_.knows_punctuation())
      rows(HeadField::kPunctuation, [&](Index i) { return row(i).punctuation; });
  }

  void near(Index most) {
    rows(HeadField::kNear, [&](Index i) {
      double sum = 0;
      for (Index j = std::max<Index>(0, i - most); j <= std::min(n_ - 1, i + most); ++j)
        sum += head_.map.at(i, j);
      return sum;
    });
  }

  double mass_on(Index i, std::span<const Index> keys) const {
    if (keys.empty()) return std::numeric_limits<double>::quiet_NaN();
    double sum = 0;
    for (const Index j : keys) sum += head_.map.at(i, j);
    return sum;
  }

  void repeats() {
    rows(HeadField::kDuplicate, [&](Index i) { return mass_on(i, facts_.earlier(i)); });
    rows(HeadField::kInduction, [&](Index i) { return mass_on(i, facts_.after_earlier(i)); });
  }

  void one(HeadField field, double value) { sample_[field] = {1, value, 0}; }

  void diversity() {
    const auto count = static_cast<double>(kept_rows_);
    const float most = *std::ranges::max_element(s_.counts);
    one(HeadField::kSink, most / count);
    s_.values.clear();
    for (Index j = 0; j < keys_; ++j) s_.values.push_back(std::sqrt(s_.squares[at(j)] / count));
    const Spread columns = spread_of(s_.values);
    one(HeadField::kD1, columns.mean);
    one(HeadField::kD2, columns.deviation);
    s_.values.clear();
    double entropies = 0;
    for (Index i = 0; i < n_; ++i) {
      if (!kept(i)) continue;
      s_.values.push_back(std::sqrt(row(i).spread / static_cast<double>(keys_)));
      entropies += row(i).entropy;
    }
    const Spread spreads = spread_of(s_.values);
    one(HeadField::kRowStd, spreads.mean);
    one(HeadField::kD3, spreads.deviation);
    double of_mean = 0;
    for (Index j = 0; j < keys_; ++j) {
      const double p = s_.sums[at(j)];
      if (p > 0) of_mean -= p * std::log(p);
    }
    one(HeadField::kMutualInformation, of_mean - entropies / count);
  }

  /// log Z_i; row sums are 1 but for normalizers with another divisor.
  double log_partition(Index i) const {
    return head_.log_divisor[at(i)] + std::log(static_cast<double>(head_.mass[at(i)]));
  }

  void partition() {
    sample_.log_partition = std::numeric_limits<double>::quiet_NaN();
    if (head_.log_divisor.empty()) return;
    double most = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < n_; ++i) most = std::max(most, log_partition(i));
    double sum = 0;
    double keys = 0;
    for (Index i = 0; i < n_; ++i) {
      sum += std::exp(log_partition(i) - most);
      keys += visible(i);
    }
    sample_.log_partition = most + std::log(sum / static_cast<double>(n_));
    sample_.log_visible = std::log(keys / static_cast<double>(n_));
  }

  const HeadMap& head_;
  const SentenceFacts& facts_;
  HeadMemory& s_;
  Index n_;     ///< rows
  Index keys_;  ///< columns without padding
  Index kept_rows_ = 0;
  HeadSample sample_;
};

}  // namespace

Moments moments_of(std::span<const double> values) {
  Moments m;
  if (values.empty()) return m;
  m.n = values.size();
  double sum = 0;
  for (const double x : values) sum += x;
  m.mean = sum / static_cast<double>(m.n);
  for (const double x : values) m.sum_squares += (x - m.mean) * (x - m.mean);
  return m;
}

SentenceFacts::SentenceFacts(std::span<const TokenId> ids, std::span<const std::uint8_t> special,
                             std::span<const std::uint8_t> punctuation,
                             std::span<const TokenId> tokens)
    : size_(std::ssize(ids)),
      knows_special_(!special.empty()),
      knows_punctuation_(!punctuation.empty()),
      positions_(static_cast<std::size_t>(padded(size_))),
      uniform_(positions_.size(), 0.0F),
      special_(padded_marks(special, size_)),
      punctuation_(padded_marks(punctuation, size_)) {
  for (std::size_t j = 0; j < positions_.size(); ++j) positions_[j] = static_cast<float>(j);
  std::fill_n(uniform_.begin(), ids.size(), 1.0F / static_cast<float>(ids.size()));
  std::unordered_map<TokenId, std::vector<Index>> seen;
  earlier_ends_.reserve(ids.size());
  after_ends_.reserve(ids.size());
  for (Index i = 0; i < size_; ++i) {
    std::vector<Index>& positions = seen[ids[static_cast<std::size_t>(i)]];
    for (const Index j : positions) {
      earlier_.push_back(j);
      if (j + 1 < i) after_.push_back(j + 1);
    }
    positions.push_back(i);
    earlier_ends_.push_back(std::ssize(earlier_));
    after_ends_.push_back(std::ssize(after_));
  }
  for (const TokenId token : tokens) places_.push_back(seen[token]);
}

HeadSample measure_head(const HeadMap& head, const SentenceFacts& facts,
                        const HeadThresholds& thresholds, std::span<float> entropy) {
  thread_local HeadMemory scratch;
  return Measure(head, facts, scratch).run(thresholds, entropy);
}

}  // namespace masque::evaluate
