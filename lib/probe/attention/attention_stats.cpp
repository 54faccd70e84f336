#include "probe/attention/attention_stats.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "probe/attention/attention_collector.hpp"
#include "probe/score/dump.hpp"

namespace masque::probe {

namespace {

AttentionTotals totals_of(const SentenceSample& sample, Index layers, Index heads, Index tokens) {
  AttentionTotals totals(layers, heads);
  totals.sentences = 1;
  totals.tokens = static_cast<std::uint64_t>(tokens);
  for (std::size_t h = 0; h < sample.heads.size(); ++h) {
    const HeadSample& from = sample.heads[h];
    totals.head[h].fields = from.fields;
    totals.head[h].tokens = from.tokens;
    totals.head[h].score_spread = from.score_spread;
    if (std::isfinite(from.log_partition))
      totals.head[h].partition.add(from.log_visible, from.log_partition);
  }
  for (std::size_t i = 0; i < sample.states.size(); ++i) {
    const auto [residual, cosine] = sample.states[i];
    if (!std::isnan(residual)) totals.state[i].residual.add(residual);
    if (!std::isnan(cosine)) totals.state[i].cosine.add(cosine);
  }
  const auto pairs = static_cast<std::size_t>(heads * heads);
  for (std::size_t i = 0; i < sample.divergence.size(); ++i) {
    if (std::isnan(sample.divergence[i])) continue;
    const std::size_t pair = i % pairs;
    const std::size_t a = pair / static_cast<std::size_t>(heads);
    const std::size_t b = pair % static_cast<std::size_t>(heads);
    totals.divergence[i].add(sample.divergence[i]);
    totals.divergence[i - pair + b * static_cast<std::size_t>(heads) + a].add(sample.divergence[i]);
  }
  return totals;
}

}  // namespace

AttentionStats::AttentionStats(const model::Model& model, const AttentionStatsOptions& options)
    : model_(model),
      options_(options),
      totals_(model.design().num_hidden_layers, model.design().num_attention_heads) {}

void AttentionStats::add(MarkedItem item) {
  const Index tokens = std::ssize(item.sequence.ids);
  MASQUE_CHECK(tokens > 0);
  if (!waiting_.empty() && waiting_tokens_ + tokens > options_.batch_tokens) flush();
  waiting_tokens_ += tokens;
  waiting_.push_back(std::move(item));
}

void AttentionStats::flush() {
  if (waiting_.empty()) return;
  std::vector<Sequence> sequences;
  sequences.reserve(waiting_.size());
  for (const MarkedItem& item : waiting_) sequences.push_back(item.sequence);
  const std::uint64_t unranked =
      options_.rank_sentences - std::min(options_.rank_sentences, totals_.sentences);
  const auto ranked = static_cast<Index>(std::min<std::uint64_t>(unranked, waiting_.size()));
  const model::Design& design = model_.design();
  const Index stack =
      design.streams == model::Streams::kTowers ? model::tower_layers(design) : totals_.layers;
  AttentionCollector collector(totals_.layers, totals_.heads, stack, waiting_, options_, ranked);
  const model::Request request{.hidden_states = true,
                               .attentions = true,
                               .attention_rows = true,
                               .attention_scores = ranked > 0 || options_.score_spread};
  model_.run(batch_of(sequences, false), request, &collector);
  for (std::size_t s = 0; s < waiting_.size(); ++s) {
    totals_.add(totals_of(collector.samples()[s], totals_.layers, totals_.heads,
                          std::ssize(sequences[s].ids)));
  }
  waiting_.clear();
  waiting_tokens_ = 0;
}

}  // namespace masque::probe
