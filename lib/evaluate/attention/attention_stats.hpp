// Statistics of all attention heads of a model over a corpus, without keeping a map.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "evaluate/attention/attention_head.hpp"
#include "evaluate/attention/attention_options.hpp"
#include "evaluate/attention/attention_totals.hpp"
#include "model/model.hpp"
#include "tensor/matrix.hpp"

namespace masque::evaluate {

// Takes the maps and states of a batch while it runs, and keeps their statistics only.

/// How near the rows of a matrix are to each other. Rank collapse: Dong et al. 2021,
/// arXiv:2103.03404.
struct StateCollapse {
  double residual = 0;  ///< ‖x − 1 mean(x)ᵀ‖_F / ‖x‖_F; NaN if x is 0
  double cosine = 0;  ///< mean over pairs of rows i ≠ j; rows that are 0 are left out; NaN without
};

/// What a sentence adds to all heads.
struct SentenceSample {
  std::vector<HeadSample> heads;      ///< layer · heads + head
  std::vector<StateCollapse> states;  ///< layers + 1
  std::vector<double> divergence;     ///< (layers, heads, heads), above the diagonal; NaN: none
};

/// The observer of one run. Calls may come from several threads, as model::Observer says.
class AttentionCollector final : public model::Observer {
 public:
  /// For a model of `layers` and `heads`; the first `ranked` of the `items`, which are the
  /// sequences of the run, get ranks, all of them what `options` want. Layers are compared in
  /// stacks of `stack`: those of a tower, or all. `items` must outlive it.
  AttentionCollector(Index layers, Index heads, Index stack, std::span<const MarkedItem> items,
                     const AttentionStatsOptions& options, Index ranked);
  ~AttentionCollector() override;
  AttentionCollector(const AttentionCollector&) = delete;
  AttentionCollector& operator=(const AttentionCollector&) = delete;

  void hidden_states(Index s, Index state, MatrixView<const float> rows) override;
  /// Finishes a layer: compares its maps with each other and with those of lower layers.
  void hidden_states(Index s, Index state, MatrixView<const double> rows) override;
  void attention_rows(Index s, Index layer, Index head,
                      const model::AttentionRows<float>& rows) override;
  /// Keeps divisors and visible keys for the map that follows; measures the scores.
  void attention_rows(Index s, Index layer, Index head,
                      const model::AttentionRows<double>& rows) override;
  void attention(Index s, Index layer, Index head, MatrixView<const float> weights) override;
  /// Measures the map of a head and keeps it until its layer is finished.
  void attention(Index s, Index layer, Index head, MatrixView<const double> weights) override;
  void source_attention(Index s, Index layer, Index head, MatrixView<const float> weights) override;
  /// The same of a map over the source.
  void source_attention(Index s, Index layer, Index head,
                        MatrixView<const double> weights) override;

  /// One an item, complete after the run.
  const std::vector<SentenceSample>& samples() const { return samples_; }

 private:
  struct LayerMaps;
  struct Work;

  template <class T>
  void take_states(Index s, Index state, MatrixView<const T> rows);
  template <class T>
  void take_rows(Index s, Index layer, Index head, const model::AttentionRows<T>& rows);
  template <class T>
  void take_map(Index s, Index layer, Index head, MatrixView<const T> weights);
  void begin(Index s, Index length);
  void compare_heads(Index s, Index layer);
  void compare_layers(Index s, Index layer);

  Index layers_;
  Index heads_;
  Index stack_;
  std::span<const MarkedItem> items_;
  AttentionStatsOptions options_;
  Index ranked_;
  std::vector<SentenceSample> samples_;
  std::vector<std::unique_ptr<Work>> work_;  ///< work of the sentences that run
  std::mutex mutex_;
  std::vector<std::unique_ptr<Work>> idle_;
};

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
  /// The totals of the sentences that have run: a reference into this object.
  const AttentionTotals& totals() const { return totals_; }

 private:
  const model::Model& model_;
  AttentionStatsOptions options_;
  AttentionTotals totals_;
  std::vector<MarkedItem> waiting_;
  Index waiting_tokens_ = 0;
};

}  // namespace masque::evaluate
