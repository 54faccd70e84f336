// The statistics of attention heads: names and formulas.
#pragma once

#include <array>
#include <string_view>

#include "base/types.hpp"

namespace masque::evaluate {

/// The statistics of a head. p is a row i of its map, divided by its sum, n the number of columns.
/// kHeadFieldTable has name and formula of each.
enum class HeadField {
  kEntropy,
  kEntropyRelative,
  kSupport,
  kDistance,
  kDistanceSpread,
  kOffset,
  kOffsetSpread,
  kDiagonal,
  kPrevious,
  kNext,
  kFirst,
  kLast,
  kSpecial,
  kPunctuation,
  kMaxWeight,
  kSparsity,
  kInduction,
  kDuplicate,
  kSink,
  kD1,
  kD2,
  kRowStd,
  kD3,
  kMutualInformation,
  kDivergence,
  kPartitionSlope,
  kLogitsRank,
  kLogitsEffectiveRank,
  kMapRank,
  kMapEffectiveRank,
  kNear,
  kBelowCosine,
  kBelowDivergence,
  kLowestCosine,
  kLowestDivergence,
};

/// What a field is measured of.
enum class MeasuredPer {
  kRow,       ///< a number of each row
  kSentence,  ///< a number of each sentence
  kSlope,     ///< a line through points, one of each sentence
  kRank,      ///< a number of each sentence, only where requested
};

/// A row of kHeadFieldTable.
struct HeadFieldInfo {
  HeadField field;           ///< the statistic
  std::string_view name;     ///< in tables, JSON and options
  MeasuredPer per;           ///< what each of its numbers belongs to
  std::string_view formula;  ///< as text for tables, with its unit if it has one
};

/// Number of statistics.
constexpr std::size_t kHeadFields = 35;

/// All statistics, in the order of the enumeration: index_of() is the row.
constexpr std::array<HeadFieldInfo, kHeadFields> kHeadFieldTable{{
    {HeadField::kEntropy, "entropy", MeasuredPer::kRow, "H = -sum_j p_j log p_j, nats"},
    {HeadField::kEntropyRelative, "entropy_relative", MeasuredPer::kRow,
     "H / log v, v > 1 visible keys"},
    {HeadField::kSupport, "support", MeasuredPer::kRow, "exp(H)"},
    {HeadField::kDistance, "distance", MeasuredPer::kRow, "m = sum_j p_j |j-i|"},
    {HeadField::kDistanceSpread, "distance_spread", MeasuredPer::kRow,
     "sqrt(sum_j p_j (|j-i| - m)^2)"},
    {HeadField::kOffset, "offset", MeasuredPer::kRow, "o = sum_j p_j (j-i)"},
    {HeadField::kOffsetSpread, "offset_spread", MeasuredPer::kRow, "sqrt(sum_j p_j (j-i - o)^2)"},
    {HeadField::kDiagonal, "diagonal", MeasuredPer::kRow, "p_i"},
    {HeadField::kPrevious, "previous", MeasuredPer::kRow, "p_(i-1), i > 0"},
    {HeadField::kNext, "next", MeasuredPer::kRow, "p_(i+1), i < n-1"},
    {HeadField::kFirst, "first", MeasuredPer::kRow, "p_0"},
    {HeadField::kLast, "last", MeasuredPer::kRow, "p_(n-1)"},
    {HeadField::kSpecial, "special", MeasuredPer::kRow, "sum of p_j over special tokens"},
    {HeadField::kPunctuation, "punctuation", MeasuredPer::kRow, "sum of p_j over punctuation"},
    {HeadField::kMaxWeight, "max_weight", MeasuredPer::kRow, "max_j p_j"},
    {HeadField::kSparsity, "sparsity", MeasuredPer::kRow, "1 / (v sum_j p_j^2)"},
    {HeadField::kInduction, "induction", MeasuredPer::kRow, "sum of p_(j+1), j+1 < i, t_j = t_i"},
    {HeadField::kDuplicate, "duplicate", MeasuredPer::kRow, "sum of p_j, j < i, t_j = t_i"},
    {HeadField::kSink, "sink", MeasuredPer::kSentence, "largest share of rows with p_j > epsilon"},
    {HeadField::kD1, "d1", MeasuredPer::kSentence, "mean_j std_i p_ij"},
    {HeadField::kD2, "d2", MeasuredPer::kSentence, "std_j std_i p_ij"},
    {HeadField::kRowStd, "row_std", MeasuredPer::kSentence, "mean_i std_j p_ij"},
    {HeadField::kD3, "d3", MeasuredPer::kSentence, "std_i std_j p_ij"},
    {HeadField::kMutualInformation, "mi", MeasuredPer::kSentence, "H(mean_i p_i) - mean_i H(p_i)"},
    {HeadField::kDivergence, "js", MeasuredPer::kSentence,
     "mean JS to the other heads of the layer"},
    {HeadField::kPartitionSlope, "partition_slope", MeasuredPer::kSlope,
     "log mean_i Z_i by log mean_i v_i, Z_i = sum_j f(s_ij)"},
    {HeadField::kLogitsRank, "logits_rank", MeasuredPer::kRank,
     "singular values > 1e-6 of the first"},
    {HeadField::kLogitsEffectiveRank, "logits_effective_rank", MeasuredPer::kRank,
     "exp(H(s/sum s))"},
    {HeadField::kMapRank, "map_rank", MeasuredPer::kRank, "as logits_rank, of the map"},
    {HeadField::kMapEffectiveRank, "map_effective_rank", MeasuredPer::kRank, "exp(H(s/sum s))"},
    {HeadField::kNear, "near", MeasuredPer::kRow, "sum of p_j, |j-i| <= k"},
    {HeadField::kBelowCosine, "below_cosine", MeasuredPer::kSentence,
     "cosine of the map and that of this head in the layer below"},
    {HeadField::kBelowDivergence, "below_js", MeasuredPer::kSentence,
     "mean JS to this head in the layer below"},
    {HeadField::kLowestCosine, "lowest_cosine", MeasuredPer::kSentence,
     "as below_cosine, of the lowest layer"},
    {HeadField::kLowestDivergence, "lowest_js", MeasuredPer::kSentence,
     "as below_js, of the lowest layer"},
}};

/// The formula of the field that stats has for each token of AttentionStatsOptions::tokens.
inline constexpr std::string_view kTokenFormula =
    "sum of p_j over this token, sentences that have it";

/// The place of `field` in kHeadFieldTable and in arrays of kHeadFields.
constexpr std::size_t index_of(HeadField field) { return static_cast<std::size_t>(field); }

/// Whether `field` is measured of attention to a source (model::SourceDesign): the rows of such a
/// map are of another text than its columns, and its scores are not kept.
constexpr bool is_of_source(HeadField field) {
  switch (field) {
    case HeadField::kDistance:
    case HeadField::kDistanceSpread:
    case HeadField::kOffset:
    case HeadField::kOffsetSpread:
    case HeadField::kDiagonal:
    case HeadField::kPrevious:
    case HeadField::kNext:
    case HeadField::kInduction:
    case HeadField::kDuplicate:
    case HeadField::kNear:
    case HeadField::kPartitionSlope:
    case HeadField::kLogitsRank:
    case HeadField::kLogitsEffectiveRank: return false;
    default: return true;
  }
}

/// Whether numbers of `field` may be below 0 where no weight of a map is.
constexpr bool may_be_negative(HeadField field) {
  return field == HeadField::kOffset || field == HeadField::kPartitionSlope;
}

}  // namespace masque::evaluate
