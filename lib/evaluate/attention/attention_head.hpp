// The statistics of one head on one sentence.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "evaluate/attention/attention_fields.hpp"
#include "evaluate/attention/attention_loops.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

/// The tokens of a sentence that a head reads, as its statistics need them.
class SentenceFacts {
 public:
  SentenceFacts() = default;
  /// `ids` are the tokens; `special` and `punctuation` have 1 or 0 for each, or are empty: nothing
  /// is known of them. `tokens` are those whose places() are wanted. Memory grows with the pairs of
  /// equal tokens.
  SentenceFacts(std::span<const TokenId> ids, std::span<const std::uint8_t> special,
                std::span<const std::uint8_t> punctuation, std::span<const TokenId> tokens = {});

  /// Tokens.
  Index size() const { return size_; }
  /// What the loops read of the columns: pointers into this object.
  ColumnFacts columns() const {
    return {positions_.data(), uniform_.data(), special_.data(), punctuation_.data()};
  }
  /// The positions of each wanted token, ascending: a reference into this object.
  const std::vector<std::vector<Index>>& places() const { return places_; }
  /// Whether special tokens are known.
  bool knows_special() const { return knows_special_; }
  /// Whether punctuation is known.
  bool knows_punctuation() const { return knows_punctuation_; }
  /// The positions j < i of the token at i, ascending: a view into this object.
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
  std::vector<std::vector<Index>> places_;
};

/// What one sentence adds to a head.
struct HeadSample {
  /// By index_of(). A field that is measured per sentence has one number, or none.
  std::array<Moments, kHeadFields> fields;
  std::vector<Moments>
      tokens;                ///< by SentenceFacts::places(): nothing of a token that is not there
  double log_visible = 0;    ///< log of the mean number of visible keys of a row
  double log_partition = 0;  ///< log of the mean Z of a row; not finite: no point of the line
  Moments score_spread;      ///< standard deviation of the visible scores of each row

  /// The numbers of `field`.
  Moments& operator[](HeadField field) { return fields[index_of(field)]; }
};

/// A map of a head as load_map leaves it, and what belongs to its rows. Views are borrowed.
struct HeadMap {
  MatrixView<const float> map;          ///< (queries, padded n), rows sum to 1
  std::span<const float> mass;          ///< mass of each row; 0: left out
  std::span<const Index> visible;       ///< keys that each row may read
  std::span<const double> log_divisor;  ///< model::AttentionRows; empty: no partition function
  bool of_source = false;  ///< the columns are tokens of a source, the rows of its target
};

/// What fields are measured by.
struct HeadThresholds {
  double sink = 0.3;  ///< the mass that a column must have in a row (Gu 2024, arXiv:2410.10781)
  Index near = 2;     ///< the distance that kNear counts up to
};

/// Every field of `head` but the divergences, those of other layers, and the ranks; of a map
/// `of_source` those of is_of_source(). `facts` are those of the sentence that its columns are,
/// `thresholds` those of kSink and kNear. `entropy` ← that of each row in nats, as it is needed for
/// divergences. Thread-safe; a thread keeps its buffers. Time: some 30 vector operations on each
/// element, without a call of the math library.
HeadSample measure_head(const HeadMap& head, const SentenceFacts& facts,
                        const HeadThresholds& thresholds, std::span<float> entropy);

/// n, mean and sum of squares of `values`, in two passes; all 0 without numbers.
Moments moments_of(std::span<const double> values);

}  // namespace masque::evaluate
