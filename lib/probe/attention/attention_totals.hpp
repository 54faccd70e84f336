// Statistics of all heads of a model over a corpus, in parts that add up.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "probe/attention/attention_fields.hpp"
#include "probe/statistics/moments.hpp"

namespace masque::probe {

/// Points of a line, in parts that add up but for rounding.
struct LinePoints {
  std::uint64_t n = 0;
  double mean_x = 0, mean_y = 0;
  double xx = 0, xy = 0, yy = 0;  ///< sums of products of the distances from the means

  void add(double x, double y) { add(LinePoints{1, x, y, 0, 0, 0}); }
  void add(const LinePoints& other);
  /// By least squares; NaN where all x are equal.
  double slope() const;
  /// Its standard error; NaN with fewer than three points.
  double slope_error() const;
};

/// √(sum of squares / (n − 1) / n), as of independent numbers; NaN with fewer than two.
double standard_error(const Moments& moments);

struct HeadTotals {
  std::array<Moments, kHeadFields> fields;  ///< nothing at kPartitionSlope
  LinePoints partition;
  Moments score_spread;  ///< as HeadSample has it; only where it was requested

  void add(const HeadTotals& other);
  const Moments& operator[](HeadField field) const { return fields[index_of(field)]; }
  Moments& operator[](HeadField field) { return fields[index_of(field)]; }
  std::uint64_t count(HeadField field) const;
  double mean(HeadField field) const;  ///< NaN without numbers; the slope of kPartitionSlope
  double error(HeadField field) const;
};

/// Of the hidden states, one a sentence. Rank collapse: Dong 2021, arXiv:2103.03404.
struct StateTotals {
  Moments residual;  ///< ‖x − 1 mean(x)ᵀ‖_F / ‖x‖_F
  Moments cosine;    ///< mean cosine between two different rows

  void add(const StateTotals& other);
};

struct AttentionTotals {
  Index layers = 0;
  Index heads = 0;
  std::uint64_t sentences = 0;
  std::uint64_t tokens = 0;
  std::vector<HeadTotals> head;     ///< layer · heads + head
  std::vector<StateTotals> state;   ///< layers + 1; 0 is the embeddings
  std::vector<Moments> divergence;  ///< (layers, heads, heads), symmetric: JS of two heads

  AttentionTotals() = default;
  AttentionTotals(Index layer_count, Index head_count);
  const HeadTotals& of(Index layer, Index h) const {
    return head[static_cast<std::size_t>(layer * heads + h)];
  }
  /// Of the same model.
  void add(const AttentionTotals& other);
};

}  // namespace masque::probe
