#include "length/probe.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "evaluate/attention/attention_stats.hpp"

namespace masque::length {

namespace {

using evaluate::HeadField;

/// Means over the heads of layers [first, end).
AttentionAtLength mean_of(const evaluate::AttentionTotals& totals, Index first, Index end) {
  const auto mean = [&](const auto& value) {
    evaluate::Moments all;
    for (Index layer = first; layer < end; ++layer) {
      for (Index head = 0; head < totals.heads; ++head) {
        const double one = value(totals.of(layer, head));
        if (!std::isnan(one)) all.add(one);
      }
    }
    return all.n > 0 ? all.mean : std::nan("");
  };
  const auto field = [&](HeadField which) {
    return mean([which](const evaluate::HeadTotals& head) { return head.mean(which); });
  };
  AttentionAtLength row;
  row.blocks = static_cast<Index>(totals.sentences);
  row.entropy = field(HeadField::kEntropy);
  row.entropy_relative = field(HeadField::kEntropyRelative);
  row.sink = field(HeadField::kSink);
  row.max_weight = field(HeadField::kMaxWeight);
  row.score_spread = mean([](const evaluate::HeadTotals& head) {
    return head.score_spread.n > 0 ? head.score_spread.mean : std::nan("");
  });
  row.log_partition = mean([](const evaluate::HeadTotals& head) {
    return head.partition.n > 0 ? head.partition.mean_y : std::nan("");
  });
  return row;
}

}  // namespace

std::vector<AttentionAtLength> probe_lengths(const TreatmentGrid& grid, const LengthStream& stream,
                                             bool layers) {
  std::vector<AttentionAtLength> all;
  for_each_cell(grid, [&](const TreatedLength& cell, const model::Model& model) {
    evaluate::AttentionStats stats(model,
                                   {.batch_tokens = grid.batch_tokens, .score_spread = true});
    for (const train::Example& block : stream.examples(cell.length)) {
      throw_if_interrupted();
      const train::Example treated = treated_block(block, grid, cell.treatment);
      evaluate::MarkedItem item;
      item.sequence.ids = treated.ids;
      item.sequence.mask = treated.mask;
      stats.add(std::move(item));
    }
    stats.flush();
    const evaluate::AttentionTotals& totals = stats.totals();
    const auto add = [&](Index first, Index end) -> AttentionAtLength& {
      all.push_back(mean_of(totals, first, end));
      all.back().cell = cell;
      return all.back();
    };
    add(0, totals.layers);
    for (Index layer = 0; layers && layer < totals.layers; ++layer)
      add(layer, layer + 1).layer = layer;
  });
  return all;
}

}  // namespace masque::length
