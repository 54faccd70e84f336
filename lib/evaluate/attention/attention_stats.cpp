#include "evaluate/attention/attention_stats.hpp"

#include <Eigen/SVD>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "evaluate/score/dump.hpp"
#include "tensor/matrix.hpp"

namespace masque::evaluate {

namespace {

/// Of the states `x` (n, hidden size) of a sentence. Sums in double.
template <class T>
StateCollapse collapse(MatrixView<const T> x) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto width = static_cast<std::size_t>(x.columns);
  std::vector<double> mean(width, 0.0);
  std::vector<double> directions(width, 0.0);
  double squares = 0;
  double count = 0;
  for (Index i = 0; i < x.rows; ++i) {
    const T* row = x.row(i);
    // Four chains, added in a fixed order.
    double parts[4] = {};
    for (std::size_t c = 0; c < width; ++c) {
      const auto value = static_cast<double>(row[c]);
      parts[c % 4] += value * value;
      mean[c] += value;
    }
    const double own = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    squares += own;
    if (!(own > 0)) continue;
    ++count;
    const double factor = 1 / std::sqrt(own);
    for (std::size_t c = 0; c < width; ++c) directions[c] += static_cast<double>(row[c]) * factor;
  }
  double away = 0;
  for (std::size_t c = 0; c < width; ++c) mean[c] /= static_cast<double>(x.rows);
  for (Index i = 0; i < x.rows; ++i) {
    const T* row = x.row(i);
    double parts[4] = {};
    for (std::size_t c = 0; c < width; ++c) {
      const double difference = static_cast<double>(row[c]) - mean[c];
      parts[c % 4] += difference * difference;
    }
    away += (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
  double together = 0;
  for (const double d : directions) together += d * d;
  return {squares > 0 ? std::sqrt(away / squares) : kNone,
          count > 1 ? (together - count) / (count * (count - 1)) : kNone};
}

// Ranks of matrices of one head. What a small key size costs: evaluate/statistics/low_rank_fit.hpp.

/// Ranks by the singular values σ of a matrix.
struct HeadRanks {
  double numeric = 0;    ///< singular values σ_i > 1e-6 σ_1
  double effective = 0;  ///< exp(H(σ / Σσ)): Roy and Vetterli 2007
};

constexpr double kSmallest = 1e-6;

/// The ranks of `x`, in double. NaN for a matrix that is 0 or not finite. Time: n³, some
/// milliseconds at n = 128.
template <class T>
HeadRanks ranks_of(MatrixView<const T> x) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Eigen::MatrixXd matrix(x.rows, x.columns);
  for (Index i = 0; i < x.rows; ++i) {
    for (Index j = 0; j < x.columns; ++j) matrix(i, j) = static_cast<double>(x.at(i, j));
  }
  if (!matrix.allFinite()) return {kNone, kNone};
  const Eigen::BDCSVD<Eigen::MatrixXd> decomposition(matrix);
  const Eigen::VectorXd& values = decomposition.singularValues();
  const double sum = values.sum();
  if (!(sum > 0)) return {kNone, kNone};
  HeadRanks out;
  double entropy = 0;
  for (const double value : values) {
    if (value > kSmallest * values[0]) ++out.numeric;
    if (value > 0) entropy -= value / sum * std::log(value / sum);
  }
  out.effective = std::exp(entropy);
  return out;
}

// Scores and maps of one head.

/// The standard deviation of every row with a visible key.
template <class T>
Moments spread_of_scores(MatrixView<const T> scores) {
  std::vector<double> spreads;
  spreads.reserve(static_cast<std::size_t>(scores.rows));
  for (Index i = 0; i < scores.rows; ++i) {
    const std::span<const T> row = scores.row_span(i);
    const auto sum = [row](const auto& of) {
      double all = 0;
      for (const T score : row) all += std::isfinite(score) ? of(static_cast<double>(score)) : 0;
      return all;
    };
    const double visible = sum([](double) { return 1.0; });
    if (visible == 0) continue;
    const double mean = sum([](double x) { return x; }) / visible;
    const double squares = sum([mean](double x) { return (x - mean) * (x - mean); });
    spreads.push_back(std::sqrt(squares / visible));
  }
  return moments_of(spreads);
}

/// The Jensen–Shannon divergence of two rows, from the entropy of their mixture and their own. Not
/// below 0 but for rounding.
double divergence_of(float mixed, float a, float b) {
  return std::max(
      0.0, static_cast<double>(mixed) - 0.5 * (static_cast<double>(a) + static_cast<double>(b)));
}

}  // namespace

/// The maps of a layer, as load_map leaves them.
struct AttentionCollector::LayerMaps {
  Matrix<float> maps;     ///< (heads · n, padded number of keys)
  Matrix<float> mass;     ///< (heads, n)
  Matrix<float> entropy;  ///< (heads, n)

  void resize(Index heads, Index n, Index keys) {
    maps.resize(heads * n, padded(keys));
    mass.resize(heads, n);
    entropy.resize(heads, n);
  }
  /// Rows of a map.
  Index rows() const { return mass.columns(); }
  MatrixView<const float> map(Index head) const {
    const Index n = mass.columns();
    return maps.view().middle_rows(head * n, n);
  }
};

namespace {

/// Of two maps, over the rows that both have.
struct MapSimilarity {
  double cosine = std::numeric_limits<double>::quiet_NaN();      ///< of all their numbers
  double divergence = std::numeric_limits<double>::quiet_NaN();  ///< mean of the rows'
};

/// Of `columns` (whole lanes) floats, in sums that do not wait for each other.
double dot(const float* x, const float* y, Index columns) {
  constexpr Index kSums = 16;
  std::array<float, kSums> sums{};
  Index j = 0;
  for (; j + kSums <= columns; j += kSums) {
    for (Index k = 0; k < kSums; ++k) sums[static_cast<std::size_t>(k)] += x[j + k] * y[j + k];
  }
  for (; j < columns; ++j) sums[0] += x[j] * y[j];
  double sum = 0;
  for (const float own : sums) sum += static_cast<double>(own);
  return sum;
}

template <class Maps>
MapSimilarity similarity(const Maps& a, const Maps& b, Index head, std::vector<float>& buffer) {
  const MatrixView<const float> left = a.map(head), right = b.map(head);
  double products = 0, of_left = 0, of_right = 0, divergence = 0, rows = 0;
  for (Index i = 0; i < left.rows; ++i) {
    if (!(a.mass.view().at(head, i) > 0) || !(b.mass.view().at(head, i) > 0)) continue;
    const float *x = left.row(i), *y = right.row(i);
    products += dot(x, y, left.columns);
    of_left += dot(x, x, left.columns);
    of_right += dot(y, y, left.columns);
    const std::array<const float*, 2> both{x, y};
    std::array<float, 4> mixed{};
    mixture_entropies(both.data(), 2, left.columns, buffer.data(), mixed.data());
    divergence +=
        divergence_of(mixed[1], a.entropy.view().at(head, i), b.entropy.view().at(head, i));
    ++rows;
  }
  if (rows == 0) return {};
  return {products / std::sqrt(of_left * of_right), divergence / rows};
}

}  // namespace

/// One layer of a sentence: maps and rows of all heads. Of the layer below and of the lowest one
/// the maps stay.
struct AttentionCollector::Work : LayerMaps {
  SentenceFacts facts;
  LayerMaps below, lowest;
  Matrix<double> log_divisor;
  Matrix<Index> visible;

  MatrixView<float> map(Index head) { return maps.view().middle_rows(head * rows(), rows()); }
};

AttentionCollector::AttentionCollector(Index layers, Index heads, Index stack,
                                       std::span<const MarkedItem> items,
                                       const AttentionStatsOptions& options, Index ranked)
    : layers_(layers),
      heads_(heads),
      stack_(stack),
      items_(items),
      options_(options),
      ranked_(ranked),
      samples_(items.size()),
      work_(items.size()) {}

AttentionCollector::~AttentionCollector() = default;

void AttentionCollector::begin(Index s, Index length) {
  const auto at = static_cast<std::size_t>(s);
  std::unique_ptr<Work> work;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      work = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!work) work = std::make_unique<Work>();
  const MarkedItem& item = items_[at];
  MASQUE_CHECK(length == std::ssize(item.sequence.ids));
  const std::vector<TokenId>& keys = options_.of_source ? item.sequence.source : item.sequence.ids;
  work->facts = SentenceFacts(keys, item.special, item.punctuation, options_.tokens);
  const Index columns = std::ssize(keys);
  work->LayerMaps::resize(heads_, length, columns);
  if (options_.compares_layers) {
    work->below.resize(heads_, length, columns);
    work->lowest.resize(heads_, length, columns);
  }
  work->log_divisor.resize(heads_, length);
  work->visible.resize(heads_, length);
  // The whole source.
  if (options_.of_source) std::ranges::fill(work->visible.span(), columns);
  work_[at] = std::move(work);
  SentenceSample& sample = samples_[at];
  sample.heads.resize(static_cast<std::size_t>(layers_ * heads_));
  sample.states.resize(static_cast<std::size_t>(layers_ + 1));
  sample.divergence.resize(static_cast<std::size_t>(layers_ * heads_ * heads_),
                           std::numeric_limits<double>::quiet_NaN());
}

template <class T>
void AttentionCollector::take_states(Index s, Index state, MatrixView<const T> rows) {
  const auto at = static_cast<std::size_t>(s);
  if (state == 0) {
    begin(s, rows.rows);
  } else {
    compare_heads(s, state - 1);
    if (options_.compares_layers) compare_layers(s, state - 1);
  }
  samples_[at].states[static_cast<std::size_t>(state)] = collapse(rows);
  if (state < layers_) return;
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(work_[at]));
}

template <class T>
void AttentionCollector::take_rows(Index s, Index layer, Index head,
                                   const model::AttentionRows<T>& rows) {
  Work& work = *work_[static_cast<std::size_t>(s)];
  std::ranges::copy(rows.log_divisor, work.log_divisor.view().row(head));
  std::ranges::copy(rows.visible, work.visible.view().row(head));
  HeadSample& sample =
      samples_[static_cast<std::size_t>(s)].heads[static_cast<std::size_t>(layer * heads_ + head)];
  if (options_.score_spread) sample.score_spread = spread_of_scores(rows.scores);
  if (s >= ranked_) return;
  const HeadRanks ranks = ranks_of(rows.scores);
  if (std::isnan(ranks.numeric)) return;
  sample[HeadField::kLogitsRank] = {1, ranks.numeric, 0};
  sample[HeadField::kLogitsEffectiveRank] = {1, ranks.effective, 0};
}

template <class T>
void AttentionCollector::take_map(Index s, Index layer, Index head, MatrixView<const T> weights) {
  Work& work = *work_[static_cast<std::size_t>(s)];
  MASQUE_CHECK(weights.rows == work.rows() && weights.columns == work.facts.size());
  const MatrixView<float> map = work.map(head);
  load_map(weights, map, work.mass.view().row(head));
  HeadMap measured{map, work.mass.view().row_span(head), work.visible.view().row_span(head),
                   work.log_divisor.view().row_span(head), options_.of_source};
  if (options_.of_source) measured.log_divisor = {};
  HeadSample& sample =
      samples_[static_cast<std::size_t>(s)].heads[static_cast<std::size_t>(layer * heads_ + head)];
  HeadSample own =
      measure_head(measured, work.facts, options_.thresholds, work.entropy.view().row_span(head));
  if (s < ranked_) {
    own[HeadField::kLogitsRank] = sample[HeadField::kLogitsRank];
    own[HeadField::kLogitsEffectiveRank] = sample[HeadField::kLogitsEffectiveRank];
    const HeadRanks ranks = ranks_of(weights);
    if (!std::isnan(ranks.numeric)) {
      own[HeadField::kMapRank] = {1, ranks.numeric, 0};
      own[HeadField::kMapEffectiveRank] = {1, ranks.effective, 0};
    }
  }
  own.score_spread = sample.score_spread;
  sample = std::move(own);
}

void AttentionCollector::compare_heads(Index s, Index layer) {
  Work& work = *work_[static_cast<std::size_t>(s)];
  SentenceSample& sample = samples_[static_cast<std::size_t>(s)];
  const Index n = work.rows();
  const Index width = work.maps.columns();
  const auto pairs = static_cast<std::size_t>(heads_ * heads_);
  std::vector<float> mixed(pairs);
  std::vector<double> sums(pairs, 0.0);
  std::vector<double> counts(pairs, 0.0);
  std::vector<float> buffer(static_cast<std::size_t>(width));
  std::vector<const float*> rows(static_cast<std::size_t>(heads_));
  for (Index i = 0; i < n; ++i) {
    for (Index h = 0; h < heads_; ++h) rows[static_cast<std::size_t>(h)] = work.map(h).row(i);
    mixture_entropies(rows.data(), heads_, width, buffer.data(), mixed.data());
    for (Index a = 0; a < heads_; ++a) {
      if (!(work.mass.view().at(a, i) > 0)) continue;
      for (Index b = a + 1; b < heads_; ++b) {
        if (!(work.mass.view().at(b, i) > 0)) continue;
        const auto pair = static_cast<std::size_t>(a * heads_ + b);
        sums[pair] +=
            divergence_of(mixed[pair], work.entropy.view().at(a, i), work.entropy.view().at(b, i));
        ++counts[pair];
      }
    }
  }
  const std::span<double> out =
      std::span(sample.divergence).subspan(static_cast<std::size_t>(layer) * pairs, pairs);
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    if (counts[pair] > 0) out[pair] = sums[pair] / counts[pair];
  }
  for (Index h = 0; h < heads_; ++h) {
    double sum = 0;
    double others = 0;
    for (Index g = 0; g < heads_; ++g) {
      const double each = out[static_cast<std::size_t>(std::min(g, h) * heads_ + std::max(g, h))];
      if (g == h || std::isnan(each)) continue;
      sum += each;
      ++others;
    }
    if (others == 0) continue;
    sample.heads[static_cast<std::size_t>(layer * heads_ + h)][HeadField::kDivergence] = {
        1, sum / others, 0};
  }
}

void AttentionCollector::compare_layers(Index s, Index layer) {
  Work& work = *work_[static_cast<std::size_t>(s)];
  SentenceSample& sample = samples_[static_cast<std::size_t>(s)];
  std::vector<float> buffer(static_cast<std::size_t>(work.maps.columns()));
  const Index place = layer % stack_;
  for (Index h = 0; place > 0 && h < heads_; ++h) {
    HeadSample& head = sample.heads[static_cast<std::size_t>(layer * heads_ + h)];
    const auto put = [&](const MapSimilarity& found, HeadField cosine, HeadField divergence) {
      if (!std::isnan(found.cosine)) head[cosine] = {1, found.cosine, 0};
      if (!std::isnan(found.divergence)) head[divergence] = {1, found.divergence, 0};
    };
    const MapSimilarity below = similarity<LayerMaps>(work, work.below, h, buffer);
    put(below, HeadField::kBelowCosine, HeadField::kBelowDivergence);
    put(place == 1 ? below : similarity<LayerMaps>(work, work.lowest, h, buffer),
        HeadField::kLowestCosine, HeadField::kLowestDivergence);
  }
  if (layer + 1 == layers_) return;
  std::swap(static_cast<LayerMaps&>(work), work.below);
  if (place > 0) return;
  std::ranges::copy(std::as_const(work.below.maps).span(), work.lowest.maps.span().begin());
  std::ranges::copy(std::as_const(work.below.mass).span(), work.lowest.mass.span().begin());
  std::ranges::copy(std::as_const(work.below.entropy).span(), work.lowest.entropy.span().begin());
}

void AttentionCollector::hidden_states(Index s, Index state, MatrixView<const float> rows) {
  take_states(s, state, rows);
}
void AttentionCollector::hidden_states(Index s, Index state, MatrixView<const double> rows) {
  take_states(s, state, rows);
}
void AttentionCollector::attention_rows(Index s, Index layer, Index head,
                                        const model::AttentionRows<float>& rows) {
  take_rows(s, layer, head, rows);
}
void AttentionCollector::attention_rows(Index s, Index layer, Index head,
                                        const model::AttentionRows<double>& rows) {
  take_rows(s, layer, head, rows);
}
void AttentionCollector::attention(Index s, Index layer, Index head,
                                   MatrixView<const float> weights) {
  take_map(s, layer, head, weights);
}
void AttentionCollector::attention(Index s, Index layer, Index head,
                                   MatrixView<const double> weights) {
  take_map(s, layer, head, weights);
}
void AttentionCollector::source_attention(Index s, Index layer, Index head,
                                          MatrixView<const float> weights) {
  take_map(s, layer, head, weights);
}
void AttentionCollector::source_attention(Index s, Index layer, Index head,
                                          MatrixView<const double> weights) {
  take_map(s, layer, head, weights);
}

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
  const Index tokens = std::ssize(item.sequence.ids) + std::ssize(item.sequence.source);
  MASQUE_CHECK(!item.sequence.ids.empty());
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
                               .attentions = !options_.of_source,
                               .source_attentions = options_.of_source,
                               .attention_rows = !options_.of_source,
                               .attention_scores = ranked > 0 || options_.score_spread};
  model_.run(batch_of(sequences, false), request, &collector);
  for (std::size_t s = 0; s < waiting_.size(); ++s) {
    totals_.add(totals_of(collector.samples()[s], totals_.layers, totals_.heads,
                          std::ssize(sequences[s].ids)));
  }
  waiting_.clear();
  waiting_tokens_ = 0;
}

}  // namespace masque::evaluate
