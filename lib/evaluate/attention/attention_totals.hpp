// Statistics of all heads of a model over a corpus, in parts that add up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "evaluate/attention/attention_fields.hpp"
#include "evaluate/statistics/summary.hpp"

namespace masque::evaluate {

/// Points of a line, in parts that add up but for rounding.
struct LinePoints {
  std::uint64_t n = 0;  ///< points
  double mean_x = 0,    ///< mean of x
      mean_y = 0;       ///< mean of y
  double xx = 0,        ///< Σ (x − mean_x)²
      xy = 0,           ///< Σ (x − mean_x) (y − mean_y)
      yy = 0;           ///< Σ (y − mean_y)²

  /// Adds the point (`x`, `y`).
  void add(double x, double y) { add(LinePoints{1, x, y, 0, 0, 0}); }
  /// Adds the points of `other`.
  void add(const LinePoints& other);
  /// By least squares; NaN where all x are equal.
  double slope() const;
  /// Its standard error; NaN with fewer than three points.
  double slope_error() const;
};

/// The standard error of the mean of `moments`, as of independent numbers; NaN with fewer than two:
/// √(sum of squares / (n − 1) / n).
double standard_error(const Moments& moments);

/// The numbers of a head over all sentences.
struct HeadTotals {
  std::array<Moments, kHeadFields> fields;  ///< nothing at kPartitionSlope
  std::vector<Moments> tokens;              ///< by AttentionStatsOptions::tokens, of each row
  LinePoints partition;  ///< for kPartitionSlope: HeadSample's logs of each sentence
  Moments score_spread;  ///< as HeadSample has it; only where it was requested

  /// Adds the numbers of `other`.
  void add(const HeadTotals& other);
  /// The numbers of `field`.
  const Moments& operator[](HeadField field) const { return fields[index_of(field)]; }
  /// The numbers of `field`.
  Moments& operator[](HeadField field) { return fields[index_of(field)]; }
  /// How many numbers `field` has: rows, sentences or points, by its MeasuredPer.
  std::uint64_t count(HeadField field) const;
  /// The mean of `field`, the slope of kPartitionSlope; NaN without numbers.
  double mean(HeadField field) const;
  /// The standard error of that, as of independent numbers of `field`; NaN with too few.
  double error(HeadField field) const;
};

/// Totals of the hidden states, one value a sentence. Rank collapse: Dong 2021, arXiv:2103.03404.
struct StateTotals {
  Moments residual;  ///< ‖x − 1 mean(x)ᵀ‖_F / ‖x‖_F
  Moments cosine;    ///< mean cosine between two different rows

  /// Adds the numbers of `other`.
  void add(const StateTotals& other);
};

/// All statistics of a model.
struct AttentionTotals {
  Index layers = 0;                 ///< number of layers of the model
  Index heads = 0;                  ///< number of heads of a layer
  std::uint64_t sentences = 0;      ///< that were measured
  std::uint64_t tokens = 0;         ///< number of tokens of these sentences
  std::vector<HeadTotals> head;     ///< layer · heads + head
  std::vector<StateTotals> state;   ///< layers + 1; 0 is the embeddings
  std::vector<Moments> divergence;  ///< (layers, heads, heads), symmetric: JS of two heads

  AttentionTotals() = default;
  /// Totals of no sentence, of a model of `layer_count` layers with `head_count` heads each.
  AttentionTotals(Index layer_count, Index head_count);
  /// The numbers of head `h` of `layer`, both from 0.
  const HeadTotals& of(Index layer, Index h) const {
    return head[static_cast<std::size_t>(layer * heads + h)];
  }
  /// Adds `other`, which is of a model with as many layers and heads.
  void add(const AttentionTotals& other);
};

}  // namespace masque::evaluate
