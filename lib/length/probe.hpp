// Statistics of a model's attention at lengths that it was not trained for.
#pragma once

#include <optional>
#include <vector>

#include "length/eval.hpp"

namespace masque::length {

/// Statistics of attention as in lib/probe's attention_stats: each head is averaged over rows and
/// blocks, then the heads are averaged. NaN if no head has a number.
struct AttentionAtLength {
  TreatedLength cell;           ///< the treatment and the length
  std::optional<Index> layer;   ///< from 0; none: all layers
  Index blocks = 0;             ///< of the stream, that were read
  double entropy = 0;           ///< nats
  double entropy_relative = 0;  ///< entropy / log n, n the visible keys
  double sink = 0;              ///< largest share of rows with a weight above 0.3 on one key
  double max_weight = 0;        ///< HeadField::kMaxWeight
  /// Standard deviation of the scores of a row, with temperature: the scale of the logits.
  double score_spread = 0;
  /// log of the mean of Z_i = Σ_j exp(s_ij) (Σ_j relu²(s_ij) of squared normalizers) over a block.
  double log_partition = 0;
};

/// Returns statistics of attention in all blocks of `stream` under every treatment of `grid`. With
/// `layers` there is also a row for each layer, after the row of all layers. The stream should hide
/// nothing (objective "tta"). Throws as for_each_cell; UsageError for models whose attention
/// weights do not come from scores of one head alone (talking heads, mixers); Interrupted. Memory
/// on top of a batch: the scores of a layer.
std::vector<AttentionAtLength> probe_lengths(const TreatmentGrid& grid, const LengthStream& stream,
                                             bool layers);

}  // namespace masque::length
