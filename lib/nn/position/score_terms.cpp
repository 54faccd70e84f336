#include "nn/position/score_terms.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>

#include "base/error.hpp"
#include "nn/position/bias_terms.hpp"
#include "nn/position/buckets.hpp"

namespace masque::nn {

// ALiBi.

std::vector<double> alibi_slopes(Index num_heads) {
  MASQUE_CHECK(num_heads > 0);
  const auto power = static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(num_heads)));
  std::vector<double> slopes;
  slopes.reserve(static_cast<std::size_t>(num_heads));
  const auto slope = [](Index h, Index heads) {
    return std::exp2(-8 * static_cast<double>(h) / static_cast<double>(heads));
  };
  for (Index h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
  // The paper's code: the rest are the odd ones of twice as many heads.
  for (Index h = 1; static_cast<Index>(slopes.size()) < num_heads; h += 2) {
    slopes.push_back(slope(h, 2 * power));
  }
  return slopes;
}

template <class T>
std::unique_ptr<ScoreBias<T>> alibi_bias(Index num_heads, PositionIds positions) {
  return offset_bias<T>(
      [slopes = alibi_slopes(num_heads)](Index head, Index offset) {
        const double slope = slopes[static_cast<std::size_t>(head)];
        return static_cast<T>(-slope * static_cast<double>(std::abs(offset)));
      },
      positions);
}

template <class T>
std::unique_ptr<PositionTerms<T>> alibi_terms(Index num_heads, PositionIds positions) {
  return std::make_unique<OffsetTerms<T>>(alibi_bias<T>(num_heads, positions), positions);
}

template std::unique_ptr<ScoreBias<float>> alibi_bias(Index, PositionIds);
template std::unique_ptr<ScoreBias<double>> alibi_bias(Index, PositionIds);
template std::unique_ptr<ScoreBias<std::complex<double>>> alibi_bias(Index, PositionIds);
template std::unique_ptr<PositionTerms<float>> alibi_terms(Index, PositionIds);
template std::unique_ptr<PositionTerms<double>> alibi_terms(Index, PositionIds);
template std::unique_ptr<PositionTerms<std::complex<double>>> alibi_terms(Index, PositionIds);

// T5.

namespace {

/// The buckets of all offsets, each found once.
class T5Buckets {
 public:
  T5Buckets(Index count, Index max_distance, bool bidirectional)
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
  const auto buckets = std::make_shared<const T5Buckets>(table.rows, max_distance, bidirectional);
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

// XLNet.

template <class T>
std::unique_ptr<PositionTerms<T>> xlnet_terms(const XlnetTerms<T>& terms, PositionIds positions) {
  std::vector<PairTables<T>> all(1);
  PairTables<T>& distances = all.front();
  distances.row = distance_rows(positions, terms.row);
  distances.scale = terms.scale;
  distances.by_query = terms.relative;
  distances.content_bias = terms.content_bias;
  distances.query_bias = terms.position_bias;
  distances.d_by_query = terms.d_relative;
  distances.d_content_bias = terms.d_content_bias;
  distances.d_query_bias = terms.d_position_bias;
  distances.owner = terms.projected;
  if (terms.segment_table.data != nullptr) {
    const auto& queries = terms.query_segments;
    const auto& keys = terms.key_segments;
    MASQUE_CHECK(queries.empty() == keys.empty());
    MASQUE_CHECK(queries.empty() || (queries.size() == positions.queries.size() &&
                                     keys.size() == positions.keys.size()));
    PairTables<T>& segments = all.emplace_back();
    segments.row = segment_rows(queries, keys);
    segments.scale = terms.scale;
    segments.by_query = terms.segment_table;
    segments.query_bias = terms.segment_bias;
    segments.d_by_query = terms.d_segment_table;
    segments.d_query_bias = terms.d_segment_bias;
  }
  return std::make_unique<PairTableTerms<T>>(std::move(all));
}

template std::unique_ptr<PositionTerms<float>> xlnet_terms(const XlnetTerms<float>&, PositionIds);
template std::unique_ptr<PositionTerms<double>> xlnet_terms(const XlnetTerms<double>&, PositionIds);
template std::unique_ptr<PositionTerms<std::complex<double>>> xlnet_terms(
    const XlnetTerms<std::complex<double>>&, PositionIds);

// DeBERTa.

namespace {

/// The row of both tables for pairs at a distance. It does not fall as the distance grows.
template <class T>
auto row_by_distance(const DisentangledTerms<T>& terms) {
  return
      [span = terms.span, buckets = terms.buckets, farthest = terms.max_distance](Index distance) {
        return std::clamp<Index>(disentangled_bucket(distance, buckets, farthest) + span, 0,
                                 2 * span - 1);
      };
}

}  // namespace

template <class T>
std::pair<Index, Index> disentangled_rows(const DisentangledTerms<T>& terms,
                                          PositionIds positions) {
  if (positions.queries.empty() || positions.keys.empty()) return {0, 0};
  const auto [first_query, last_query] = std::ranges::minmax(positions.queries);
  const auto [first_key, last_key] = std::ranges::minmax(positions.keys);
  const auto row = row_by_distance(terms);
  const Index first = row(first_query - last_key);
  return {first, row(last_query - first_key) - first + 1};
}

template <class T>
std::unique_ptr<PositionTerms<T>> disentangled_terms(const DisentangledTerms<T>& terms,
                                                     PositionIds positions) {
  for (const MatrixView<const T>& table : {terms.position_key, terms.position_query})
    MASQUE_CHECK(table.data == nullptr || table.rows == 2 * terms.span);
  std::vector<PairTables<T>> all(1);
  PairTables<T>& tables = all.front();
  tables.row = distance_rows(positions, row_by_distance(terms));
  tables.scale = terms.scale;
  tables.by_query = terms.position_key;
  tables.by_key = terms.position_query;
  tables.d_by_query = terms.d_position_key;
  tables.d_by_key = terms.d_position_query;
  tables.owner = terms.projected;
  return std::make_unique<PairTableTerms<T>>(std::move(all));
}

template std::pair<Index, Index> disentangled_rows(const DisentangledTerms<float>&, PositionIds);
template std::pair<Index, Index> disentangled_rows(const DisentangledTerms<double>&, PositionIds);
template std::pair<Index, Index> disentangled_rows(const DisentangledTerms<std::complex<double>>&,
                                                   PositionIds);
template std::unique_ptr<PositionTerms<float>> disentangled_terms(const DisentangledTerms<float>&,
                                                                  PositionIds);
template std::unique_ptr<PositionTerms<double>> disentangled_terms(const DisentangledTerms<double>&,
                                                                   PositionIds);
template std::unique_ptr<PositionTerms<std::complex<double>>> disentangled_terms(
    const DisentangledTerms<std::complex<double>>&, PositionIds);

// BigBird.

namespace {

/// The terms of a head, the same for all.
template <class T>
class RepeatedBlockBias final : public HeadBias<T> {
 public:
  RepeatedBlockBias(Index block_size, Index repeats, PositionIds positions)
      : block_size_(block_size),
        last_block_((std::ssize(positions.keys) - 1) / block_size),
        term_(static_cast<T>(std::log1p(static_cast<double>(repeats)))),
        queries_(positions.queries) {}

  void add(mask::Range queries, mask::Range keys, MatrixView<T> scores) const override {
    const Index repeated = std::min(keys.end, block_size_) - keys.begin;
    if (repeated <= 0) return;
    for (Index i = 0; i < queries.size(); ++i) {
      const Index block = queries_[static_cast<std::size_t>(queries.begin + i)] / block_size_;
      if (block == 0 || block == last_block_) continue;
      for (Index j = 0; j < repeated; ++j) scores.at(i, j) += term_;
    }
  }

 private:
  Index block_size_;
  Index last_block_;
  T term_;
  std::span<const Index> queries_;
};

/// They have no parameters, and no gradient goes to queries and keys.
template <class T>
class RepeatedBlockTerms final : public PositionTerms<T>, public ScoreBias<T> {
 public:
  explicit RepeatedBlockTerms(const RepeatedBlockBias<T>& bias) : bias_(bias) {}
  const ScoreBias<T>* bias() const override { return this; }
  std::unique_ptr<HeadBias<T>> head(Index /*head*/, MatrixView<const T> /*query*/,
                                    MatrixView<const T> /*key*/) const override {
    return std::make_unique<RepeatedBlockBias<T>>(bias_);
  }

 private:
  RepeatedBlockBias<T> bias_;
};

}  // namespace

template <class T>
std::unique_ptr<PositionTerms<T>> repeated_block_terms(Index block_size, Index repeats,
                                                       PositionIds positions) {
  MASQUE_CHECK(block_size > 0 && repeats >= 0);
  return std::make_unique<RepeatedBlockTerms<T>>(
      RepeatedBlockBias<T>(block_size, repeats, positions));
}

template std::unique_ptr<PositionTerms<float>> repeated_block_terms(Index, Index, PositionIds);
template std::unique_ptr<PositionTerms<double>> repeated_block_terms(Index, Index, PositionIds);
template std::unique_ptr<PositionTerms<std::complex<double>>> repeated_block_terms(Index, Index,
                                                                                   PositionIds);

}  // namespace masque::nn
