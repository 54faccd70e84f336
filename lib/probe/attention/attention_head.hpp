// The statistics of one head on one sentence.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "probe/attention/attention_fields.hpp"
#include "probe/attention/attention_loops.hpp"
#include "probe/statistics/moments.hpp"

namespace masque::probe {

/// The tokens of a sentence, as the statistics of every head need them.
class SentenceFacts {
 public:
  SentenceFacts() = default;
  /// special, punctuation  one a token, or empty: nothing is known of them.
  SentenceFacts(std::span<const TokenId> ids, std::span<const std::uint8_t> special,
                std::span<const std::uint8_t> punctuation);

  Index size() const { return size_; }
  ColumnFacts columns() const {
    return {positions_.data(), uniform_.data(), special_.data(), punctuation_.data()};
  }
  bool knows_special() const { return knows_special_; }
  bool knows_punctuation() const { return knows_punctuation_; }
  /// The positions j < i of the token at i.
  std::span<const Index> earlier(Index i) const { return of(earlier_, earlier_ends_, i); }
  /// The positions j + 1 < i after an earlier occurrence j of the token at i.
  std::span<const Index> after_earlier(Index i) const { return of(after_, after_ends_, i); }

 private:
  static std::span<const Index> of(const std::vector<Index>& all, const std::vector<Index>& ends,
                                   Index i) {
    const Index begin = i == 0 ? 0 : ends[static_cast<std::size_t>(i) - 1];
    const Index end = ends[static_cast<std::size_t>(i)];
    return std::span(all).subspan(static_cast<std::size_t>(begin),
                                  static_cast<std::size_t>(end - begin));
  }

  Index size_ = 0;
  bool knows_special_ = false;
  bool knows_punctuation_ = false;
  std::vector<float> positions_, uniform_, special_, punctuation_;
  std::vector<Index> earlier_, earlier_ends_, after_, after_ends_;
};

/// What one sentence adds to a head.
struct HeadSample {
  std::array<Moments, kHeadFields> fields;
  /// Of the partition function: log of the mean number of visible keys, and of the mean Z.
  double log_visible = 0;
  double log_partition = 0;  ///< not finite: no point
  Moments score_spread;      ///< of each row the standard deviation of its visible scores

  Moments& operator[](HeadField field) { return fields[index_of(field)]; }
};

/// A map of a head as load_map leaves it, and what belongs to its rows.
struct HeadMap {
  MatrixView<const float> map;
  std::span<const float> mass;          ///< of each row; 0: left out
  std::span<const Index> visible;       ///< keys that each row may read
  std::span<const double> log_divisor;  ///< model::AttentionRows; empty: no partition function
};

/// What fields are measured by.
struct HeadThresholds {
  double sink = 0.3;  ///< the mass that a column must have in a row (Gu 2024, arXiv:2410.10781)
  Index near = 2;     ///< the distance that kNear counts up to
};

/// Every field but the divergences, those of other layers, and the ranks. entropy: of each row, as
/// it is needed for divergences. Time: some 30 vector operations on each element, without a call of
/// the math library.
HeadSample measure_head(const HeadMap& head, const SentenceFacts& facts,
                        const HeadThresholds& thresholds, std::span<float> entropy);

/// n, mean and sum of squares of some numbers.
Moments moments_of(std::span<const double> values);

}  // namespace masque::probe
