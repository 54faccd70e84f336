// Statistics of all attention heads of a model over a corpus, without keeping a map.
#pragma once

#include <cstdint>
#include <vector>

#include "model/model.hpp"
#include "probe/attention/attention_options.hpp"
#include "probe/attention/attention_totals.hpp"

namespace masque::probe {

/// Sums over sentences. A row without mass is left out; rows of other normalizers than softmax are
/// divided by their sums. Of two-stream models the content stream is measured. In float, whatever
/// the model: errors stay below 1e-6 of the largest number that is summed.
///
/// Results do not depend on batches nor threads: rows are summed by sentence, sentences in order.
/// Memory: a batch's sums, (layers · heads · 1 KiB) a sentence, and the maps of one layer of each
/// sentence that runs at the moment.
class AttentionStats {
 public:
  /// `model` must outlive it. `options` say what is measured.
  AttentionStats(const model::Model& model, const AttentionStatsOptions& options);

  /// Adds `item`, a sentence of at least one token; runs the batch first if it would become too
  /// large. Throws as Model::run does.
  void add(MarkedItem item);
  /// Runs what waits.
  void flush();
  /// Of the sentences that have run: a reference into this object.
  const AttentionTotals& totals() const { return totals_; }

 private:
  const model::Model& model_;
  AttentionStatsOptions options_;
  AttentionTotals totals_;
  std::vector<MarkedItem> waiting_;
  Index waiting_tokens_ = 0;
};

}  // namespace masque::probe
