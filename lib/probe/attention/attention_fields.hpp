// The statistics of attention heads: names and formulas.
#pragma once

#include <array>
#include <string_view>

#include "base/types.hpp"

namespace masque::probe {

/// Of a head. p is a row i of its map, divided by its sum, n the number of rows.
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
};

enum class Sample {
  kRow,       ///< a number of each row
  kSentence,  ///< a number of each sentence
  kSlope,     ///< a line through points, one of each sentence
  kRank,      ///< a number of each sentence, only where requested
};

struct HeadFieldInfo {
  HeadField field;
  std::string_view name;
  Sample sample;
  std::string_view formula;
};

constexpr std::size_t kHeadFields = 29;

/// In the order of the enumeration.
constexpr std::array<HeadFieldInfo, kHeadFields> kHeadFieldTable{{
    {HeadField::kEntropy, "entropy", Sample::kRow, "H = -sum_j p_j log p_j, nats"},
    {HeadField::kEntropyRelative, "entropy_relative", Sample::kRow,
     "H / log v, v > 1 visible keys"},
    {HeadField::kSupport, "support", Sample::kRow, "exp(H)"},
    {HeadField::kDistance, "distance", Sample::kRow, "m = sum_j p_j |j-i|"},
    {HeadField::kDistanceSpread, "distance_spread", Sample::kRow, "sqrt(sum_j p_j (|j-i| - m)^2)"},
    {HeadField::kOffset, "offset", Sample::kRow, "o = sum_j p_j (j-i)"},
    {HeadField::kOffsetSpread, "offset_spread", Sample::kRow, "sqrt(sum_j p_j (j-i - o)^2)"},
    {HeadField::kDiagonal, "diagonal", Sample::kRow, "p_i"},
    {HeadField::kPrevious, "previous", Sample::kRow, "p_(i-1), i > 0"},
    {HeadField::kNext, "next", Sample::kRow, "p_(i+1), i < n-1"},
    {HeadField::kFirst, "first", Sample::kRow, "p_0"},
    {HeadField::kSpecial, "special", Sample::kRow, "sum of p_j over special tokens"},
    {HeadField::kPunctuation, "punctuation", Sample::kRow, "sum of p_j over punctuation"},
    {HeadField::kMaxWeight, "max_weight", Sample::kRow, "max_j p_j"},
    {HeadField::kSparsity, "sparsity", Sample::kRow, "1 / (v sum_j p_j^2)"},
    {HeadField::kInduction, "induction", Sample::kRow, "sum of p_(j+1), j+1 < i, t_j = t_i"},
    {HeadField::kDuplicate, "duplicate", Sample::kRow, "sum of p_j, j < i, t_j = t_i"},
    {HeadField::kSink, "sink", Sample::kSentence, "largest share of rows with p_j > epsilon"},
    {HeadField::kD1, "d1", Sample::kSentence, "mean_j std_i p_ij"},
    {HeadField::kD2, "d2", Sample::kSentence, "std_j std_i p_ij"},
    {HeadField::kRowStd, "row_std", Sample::kSentence, "mean_i std_j p_ij"},
    {HeadField::kD3, "d3", Sample::kSentence, "std_i std_j p_ij"},
    {HeadField::kMutualInformation, "mi", Sample::kSentence, "H(mean_i p_i) - mean_i H(p_i)"},
    {HeadField::kDivergence, "js", Sample::kSentence, "mean JS to the other heads of the layer"},
    {HeadField::kPartitionSlope, "partition_slope", Sample::kSlope,
     "of log mean_i Z_i by log mean v"},
    {HeadField::kLogitsRank, "logits_rank", Sample::kRank, "singular values > 1e-6 of the first"},
    {HeadField::kLogitsEffectiveRank, "logits_effective_rank", Sample::kRank, "exp(H(s/sum s))"},
    {HeadField::kMapRank, "map_rank", Sample::kRank, "as logits_rank, of the map"},
    {HeadField::kMapEffectiveRank, "map_effective_rank", Sample::kRank, "exp(H(s/sum s))"},
}};

constexpr std::size_t index_of(HeadField field) { return static_cast<std::size_t>(field); }

}  // namespace masque::probe
