#include "evaluate/states/model_divergence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "evaluate/score/token_distribution.hpp"
#include "evaluate/states/state_distance.hpp"
#include "model/variants.hpp"
#include "tensor/matrix.hpp"

namespace masque::evaluate {

namespace {

std::string_view head_name(model::HeadKind kind) {
  switch (kind) {
    case model::HeadKind::kMasked: return "a masked head";
    case model::HeadKind::kCausal: return "a causal head";
    case model::HeadKind::kNone: return "no head";
    default: return "a discriminator";
  }
}

void check_same(Index first, Index second, std::string_view what) {
  if (first == second) return;
  throw InputError(fmt::format("{}: {}, expected {}, as the other model has", what, second, first));
}

}  // namespace

NameTable<ComparedPart> compared_part_names() {
  static constexpr std::array<std::pair<std::string_view, ComparedPart>, 3> kNames{
      {{"states", ComparedPart::kStates},
       {"attention", ComparedPart::kAttention},
       {"predictions", ComparedPart::kPredictions}}};
  return kNames;
}

NameTable<DivergenceMeasure> divergence_measure_names() {
  static constexpr std::array<std::pair<std::string_view, DivergenceMeasure>, 8> kNames{
      {{"distance", DivergenceMeasure::kDistance},
       {"cosine", DivergenceMeasure::kCosine},
       {"attention", DivergenceMeasure::kAttention},
       {"kl", DivergenceMeasure::kKl},
       {"agreement", DivergenceMeasure::kAgreement},
       {"perplexity", DivergenceMeasure::kPerplexity},
       {"perplexity_against", DivergenceMeasure::kPerplexityAgainst},
       {"perplexity_ratio", DivergenceMeasure::kPerplexityRatio}}};
  return kNames;
}

void MeasuredMean::add(double sum, double count, double extreme, bool least) {
  if (count == 0) return;
  mean.add(sum, count);
  if (!worst || (least ? extreme < *worst : extreme > *worst)) worst = extreme;
}

namespace {

bool is_perplexity(DivergenceMeasure measure) {
  return measure == DivergenceMeasure::kPerplexity ||
         measure == DivergenceMeasure::kPerplexityAgainst ||
         measure == DivergenceMeasure::kPerplexityRatio;
}

}  // namespace

double DivergenceRow::value() const {
  return is_perplexity(measure) ? std::exp(numbers.mean.mean()) : numbers.mean.mean();
}

std::optional<Interval> DivergenceRow::interval() const {
  auto interval = numbers.mean.interval();
  if (!interval) return interval;
  if (is_perplexity(measure)) return Interval{std::exp(interval->low), std::exp(interval->high)};
  const bool bounded =
      measure == DivergenceMeasure::kCosine || measure == DivergenceMeasure::kAgreement;
  if (bounded) interval->high = std::min(interval->high, 1.0);
  interval->low = std::max(interval->low, measure == DivergenceMeasure::kCosine ? -1.0 : 0.0);
  return interval;
}

std::optional<double> DivergenceRow::worst() const {
  const bool none = is_perplexity(measure) || measure == DivergenceMeasure::kAgreement;
  return none ? std::nullopt : numbers.worst;
}

/// Numbers of one text.
struct ModelDivergence::Numbers {
  double sum = 0, count = 0;
  double largest = -std::numeric_limits<double>::infinity();
  double smallest = std::numeric_limits<double>::infinity();

  void add(double x) {
    sum += x;
    ++count;
    largest = std::max(largest, x);
    smallest = std::min(smallest, x);
  }
  void add(const Numbers& other) {
    sum += other.sum;
    count += other.count;
    largest = std::max(largest, other.largest);
    smallest = std::min(smallest, other.smallest);
  }
};

/// A text, its place in the batch, and what is found of it.
struct ModelDivergence::Text {
  const Sequence* sequence = nullptr;
  Index first_row = 0;  ///< of the request's rows
  std::vector<Index> rows;
  std::vector<Numbers> distance, cosine;  ///< by state
  std::vector<Numbers> attention;         ///< by layer and head
  Numbers kl, agreement, loss, loss_against, loss_change;
};

/// Keeps what the first model gives, then compares with it what the second one gives.
template <class T>
class ModelDivergence::Comparer final : public model::Observer {
 public:
  Comparer(std::vector<Text>& texts, std::size_t heads, bool next_token)
      : texts_(texts), kept_(texts.size()), heads_(heads), next_token_(next_token) {
    for (std::size_t s = 0; s < texts.size(); ++s) {
      kept_[s].states.resize(texts[s].distance.size());
      kept_[s].attention.resize(texts[s].attention.size());
      kept_[s].logits.resize(texts[s].rows.size());
    }
  }

  /// From here on the second model runs.
  void compare() { keeping_ = false; }

  using Observer::attention;
  using Observer::hidden_states;
  using Observer::logits;

  void hidden_states(Index s, Index state, MatrixView<const T> x) override {
    const auto at = static_cast<std::size_t>(state);
    std::vector<T>& own = kept_[static_cast<std::size_t>(s)].states[at];
    if (keeping_) return keep(x, own);
    Text& text = texts_[static_cast<std::size_t>(s)];
    for (Index i = 0; i < x.rows; ++i) {
      const auto [distance, cosine] = compare_states(x.row_span(i), row_of(own, i, x.columns));
      text.distance[at].add(distance);
      text.cosine[at].add(cosine);
    }
  }

  void attention(Index s, Index layer, Index head, MatrixView<const T> x) override {
    const std::size_t at =
        static_cast<std::size_t>(layer) * heads_ + static_cast<std::size_t>(head);
    std::vector<T>& own = kept_[static_cast<std::size_t>(s)].attention[at];
    if (keeping_) return keep(x, own);
    Numbers& found = texts_[static_cast<std::size_t>(s)].attention[at];
    for (Index i = 0; i < x.rows; ++i) {
      const auto weights = x.row_span(i);
      const auto before = row_of(own, i, x.columns);
      double apart = 0;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        apart += std::abs(static_cast<double>(weights[j]) - static_cast<double>(before[j]));
      }
      found.add(apart / 2);
    }
    own = {};
  }

  void logits(Index s, Index first, MatrixView<const T> x) override {
    Text& text = texts_[static_cast<std::size_t>(s)];
    for (Index i = 0; i < x.rows; ++i) {
      const auto at = static_cast<std::size_t>(first + i - text.first_row);
      std::vector<T>& own = kept_[static_cast<std::size_t>(s)].logits[at];
      const auto row = x.row_span(i);
      if (keeping_) {
        own.assign(row.begin(), row.end());
        continue;
      }
      const TokenDistribution p = predict<T>(std::span<const T>(own));
      const TokenDistribution q = predict<T>(row);
      text.kl.add(divergence(p, q));
      text.agreement.add(most_probable(p) == most_probable(q) ? 1 : 0);
      if (!next_token_) continue;
      const auto target =
          static_cast<std::size_t>(text.sequence->ids[static_cast<std::size_t>(text.rows[at]) + 1]);
      text.loss.add(-p.logarithm[target]);
      text.loss_against.add(-q.logarithm[target]);
      text.loss_change.add(p.logarithm[target] - q.logarithm[target]);
    }
  }

 private:
  struct Kept {
    std::vector<std::vector<T>> states, attention, logits;
  };

  static void keep(MatrixView<const T> x, std::vector<T>& to) {
    to.clear();
    to.reserve(static_cast<std::size_t>(x.rows * x.columns));
    for (Index i = 0; i < x.rows; ++i) {
      const auto row = x.row_span(i);
      to.insert(to.end(), row.begin(), row.end());
    }
  }
  static std::span<const T> row_of(const std::vector<T>& matrix, Index i, Index columns) {
    return std::span(matrix).subspan(static_cast<std::size_t>(i * columns),
                                     static_cast<std::size_t>(columns));
  }

  std::vector<Text>& texts_;
  std::vector<Kept> kept_;
  std::size_t heads_;
  bool next_token_;
  bool keeping_ = true;
};

ModelDivergence::ModelDivergence(const model::Model& first, const model::Model& second,
                                 const DivergenceRequest& request)
    : first_(first), second_(second), request_(request) {
  MASQUE_CHECK(!request.parts.empty());
  const model::Design& a = first.design();
  const model::Design& b = second.design();
  if (first.precision() != second.precision())
    throw UsageError("models of different precision, expected the same");
  check_same(a.num_hidden_layers, b.num_hidden_layers, "layers");
  check_same(a.hidden_size, b.hidden_size, "hidden size");
  check_same(value_heads(a), value_heads(b), "heads");
  check_same(a.vocab_size, b.vocab_size, "vocabulary");
  if (a.head.kind != b.head.kind) {
    throw InputError(fmt::format("{}, expected {}, as the other model has", head_name(b.head.kind),
                                 head_name(a.head.kind)));
  }
  if (a.streams != b.streams)
    throw InputError("another kind of streams than the other model, expected the same");
  heads_ = static_cast<std::size_t>(value_heads(a));
  const auto layers = static_cast<std::size_t>(a.num_hidden_layers);
  if (compares(ComparedPart::kStates)) {
    distance_.resize(layers + 1);
    cosine_.resize(layers + 1);
  }
  if (compares(ComparedPart::kAttention)) {
    layers_.resize(layers);
    heads_of_.resize(layers * heads_);
  }
}

ModelDivergence::~ModelDivergence() = default;

bool ModelDivergence::compares(ComparedPart part) const {
  return std::ranges::find(request_.parts, part) != request_.parts.end() &&
         (part != ComparedPart::kPredictions || has_vocabulary(first_.design()));
}

void ModelDivergence::add(Sequence first, Sequence second) {
  MASQUE_CHECK(first.ids == second.ids);
  for (const Sequence* one : {&first, &second}) check_one_stream(*one, first_.design());
  if (!waiting_.empty() && waiting_tokens_ + first.size() > request_.batch_tokens) flush();
  waiting_tokens_ += first.size();
  waiting_.emplace_back(std::move(first), std::move(second));
}

void ModelDivergence::flush() {
  std::vector<Text> texts;
  for (const auto& [sequence, other] : waiting_) {
    Text& text = texts.emplace_back();
    text.sequence = &sequence;
    text.distance.resize(distance_.size());
    text.cosine.resize(cosine_.size());
    text.attention.resize(heads_of_.size());
    if (!compares(ComparedPart::kPredictions)) continue;
    const Index next = request_.next_token ? 1 : 0;
    for (Index t = std::max(sequence.prefix, next); t < sequence.size() - sequence.suffix; ++t)
      text.rows.push_back(t - next);
  }
  if (first_.precision() == kernel::Precision::kF64) {
    run<double>(texts);
  } else {
    run<float>(texts);
  }
  for (const Text& text : texts) take(text);
  waiting_.clear();
  waiting_tokens_ = 0;
}

template <class T>
void ModelDivergence::run(std::vector<Text>& texts) {
  if (texts.empty()) return;
  model::Request request;
  request.hidden_states = compares(ComparedPart::kStates);
  request.attentions = compares(ComparedPart::kAttention);
  Index begin = 0;
  for (Text& text : texts) {
    text.first_row = std::ssize(request.rows);
    for (const Index row : text.rows) request.rows.push_back(begin + row);
    begin += text.sequence->size();
  }
  request.logits = !request.rows.empty();
  Comparer<T> comparer(texts, heads_, request_.next_token);
  const auto run_one = [&](const model::Model& model, bool second) {
    model::Batch batch;
    for (const auto& [own, other] : waiting_) {
      const Sequence& text = second ? other : own;
      batch.add(text.ids, {text.positions, text.segments, text.mask, {}});
    }
    model.run(batch, request, &comparer);
  };
  run_one(first_, false);
  comparer.compare();
  run_one(second_, true);
}

void ModelDivergence::take(const Text& text) {
  const auto add_text = [](MeasuredMean& mean, const Numbers& numbers) {
    mean.add(numbers.sum, numbers.count, numbers.largest);
  };
  for (std::size_t s = 0; s < distance_.size(); ++s) {
    add_text(distance_[s], text.distance[s]);
    const Numbers& cosine = text.cosine[s];
    cosine_[s].add(cosine.sum, cosine.count, cosine.smallest, true);
  }
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    Numbers all;
    for (std::size_t head = 0; head < heads_; ++head) {
      const Numbers& found = text.attention[layer * heads_ + head];
      add_text(heads_of_[layer * heads_ + head], found);
      all.add(found);
    }
    add_text(layers_[layer], all);
  }
  add_text(kl_, text.kl);
  add_text(agreement_, text.agreement);
  add_text(loss_, text.loss);
  add_text(loss_against_, text.loss_against);
  add_text(loss_change_, text.loss_change);
}

std::vector<DivergenceRow> ModelDivergence::rows() const {
  using enum DivergenceMeasure;
  std::vector<DivergenceRow> rows;
  const auto add = [&](DivergenceMeasure measure, const MeasuredMean& numbers,
                       std::optional<std::size_t> layer = {},
                       std::optional<std::size_t> head = {}) {
    DivergenceRow& row = rows.emplace_back();
    row.measure = measure;
    if (layer) row.layer = static_cast<Index>(*layer);
    if (head) row.head = static_cast<Index>(*head);
    row.numbers = numbers;
  };
  for (std::size_t s = 0; s < distance_.size(); ++s) add(kDistance, distance_[s], s);
  for (std::size_t s = 0; s < cosine_.size(); ++s) add(kCosine, cosine_[s], s);
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    add(kAttention, layers_[layer], layer);
    for (std::size_t head = 0; head < heads_; ++head)
      add(kAttention, heads_of_[layer * heads_ + head], layer, head);
  }
  if (!compares(ComparedPart::kPredictions)) return rows;
  add(kKl, kl_);
  add(kAgreement, agreement_);
  if (!request_.next_token) return rows;
  add(kPerplexity, loss_);
  add(kPerplexityAgainst, loss_against_);
  add(kPerplexityRatio, loss_change_);
  return rows;
}

}  // namespace masque::evaluate
