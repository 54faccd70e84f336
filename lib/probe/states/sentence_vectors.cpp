#include "probe/states/sentence_vectors.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"

namespace masque::probe {

namespace {

/// Sums of the states that come, in the order of the rows.
class StateSums : public model::Observer {
 public:
  /// `unpooled`: first rows of a sequence that count only in last_states().
  StateSums(Index sequences, Index size, Index last_layer, Index unpooled)
      : sums_(Matrix<double>::zero(sequences, size)),
        counts_(static_cast<std::size_t>(sequences)),
        last_layer_(last_layer),
        unpooled_(unpooled) {}

  void last_states(Index sequence, Index, MatrixView<const float> rows) override {
    add(sequence, rows);
  }
  void last_states(Index sequence, Index, MatrixView<const double> rows) override {
    add(sequence, rows);
  }
  void hidden_states(Index sequence, Index state, MatrixView<const float> rows) override {
    add_layer(sequence, state, rows);
  }
  void hidden_states(Index sequence, Index state, MatrixView<const double> rows) override {
    add_layer(sequence, state, rows);
  }

  std::vector<double> mean(Index sequence) const {
    const std::span<const double> sums = sums_.view().row_span(sequence);
    std::vector<double> out(sums.begin(), sums.end());
    const Index count = counts_[static_cast<std::size_t>(sequence)];
    for (double& value : out) value = count == 0 ? 0 : value / static_cast<double>(count);
    return out;
  }

 private:
  template <class T>
  void add_layer(Index sequence, Index state, MatrixView<const T> rows) {
    // A model of one layer has the same first and last.
    for (const Index wanted : {Index{1}, last_layer_}) {
      if (state == wanted) add(sequence, rows, unpooled_);
    }
  }

  template <class T>
  void add(Index sequence, MatrixView<const T> rows, Index first = 0) {
    const std::span<double> sums = sums_.view().row_span(sequence);
    for (Index i = first; i < rows.rows; ++i) {
      const std::span<const T> row = rows.row_span(i);
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += static_cast<double>(row[j]);
    }
    counts_[static_cast<std::size_t>(sequence)] += std::max<Index>(rows.rows - first, 0);
  }

  Matrix<double> sums_;
  std::vector<Index> counts_;
  Index last_layer_;
  Index unpooled_;
};

constexpr std::array<std::pair<std::string_view, Similarity>, 4> kSimilarityNames{
    {{"cosine", Similarity::kCosine},
     {"dot", Similarity::kDot},
     {"euclidean", Similarity::kEuclidean},
     {"manhattan", Similarity::kManhattan}}};

double length_of(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

Index shorter(Index a, Index b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

}  // namespace

void normalize(std::vector<double>& vector) {
  const double length = std::max(length_of(vector), 1e-12);
  for (double& value : vector) value /= length;
}

double cosine(std::span<const double> x, std::span<const double> y) {
  MASQUE_CHECK(x.size() == y.size());
  double product = 0;
  for (std::size_t i = 0; i < x.size(); ++i) product += x[i] * y[i];
  return product / (std::max(length_of(x), 1e-12) * std::max(length_of(y), 1e-12));
}

NameTable<Similarity> similarity_names() { return kSimilarityNames; }

double similarity(Similarity kind, std::span<const double> x, std::span<const double> y) {
  MASQUE_CHECK(x.size() == y.size());
  if (kind == Similarity::kCosine) return cosine(x, y);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = x[i] - y[i];
    sum += kind == Similarity::kDot         ? x[i] * y[i]
           : kind == Similarity::kEuclidean ? difference * difference
                                            : std::abs(difference);
  }
  return kind == Similarity::kDot ? sum : kind == Similarity::kEuclidean ? -std::sqrt(sum) : -sum;
}

VectorMaker::VectorMaker(const model::Model& model, const VectorOptions& options, Sink sink)
    : model_(model),
      options_(options),
      longest_(shorter(options.max_length, model.design().max_position_embeddings)),
      sink_(std::move(sink)) {}

std::optional<std::string> VectorMaker::length_problem(const Sentence& sentence) const {
  if (longest_ == 0 || sentence.size() <= longest_) return std::nullopt;
  const Index fits = longest_ - sentence.prefix - sentence.suffix;
  if (options_.truncate && fits >= 1) return std::nullopt;
  return too_long(sentence.size(), longest_);
}

void VectorMaker::add(std::uint64_t id, Sentence sentence) {
  MASQUE_CHECK(!length_problem(sentence));
  if (longest_ != 0 && sentence.size() > longest_) {
    const Index kept = longest_ - sentence.prefix - sentence.suffix;
    shortened_.add(sentence.tokens() - kept);
    const Index begin = options_.keep_last ? sentence.tokens() - kept : 0;
    sentence = part_of(sentence, begin, begin + kept);
  }
  const auto before = static_cast<Index>(batch_.ids.size());
  if (before > 0 && before + sentence.size() > options_.batch_tokens) flush();
  const auto begin = static_cast<Index>(batch_.ids.size());
  batch_.add(sentence.ids);
  if (options_.mask_of) batch_.masks.emplace_back(options_.mask_of(sentence.ids));
  any_segments_ = any_segments_ || !sentence.segments.empty();
  sentence.segments.resize(sentence.ids.size(), 0);
  batch_.segments.insert(batch_.segments.end(), sentence.segments.begin(), sentence.segments.end());
  Index first = 0;
  Index end = sentence.size();
  if (options_.pooling == SentencePooling::kTta) {
    first = sentence.prefix;
    end -= sentence.suffix;
  }
  first = std::max(first, options_.unpooled);
  if (options_.pooling == SentencePooling::kCls) {
    if (first >= end) first = 0;
    end = std::min<Index>(end, first + 1);
  }
  for (Index i = first; i < end; ++i) request_.rows.push_back(begin + i);
  ids_.push_back(id);
}

void VectorMaker::flush() {
  if (ids_.empty()) return;
  if (!any_segments_) batch_.segments.clear();
  if (options_.pooling == SentencePooling::kFirstLast) {
    request_.hidden_states = true;
    request_.rows.clear();
  } else {
    request_.last_states = true;
  }
  const model::Design& design = model_.design();
  StateSums sums(batch_.sequences(), design.hidden_size, design.num_hidden_layers,
                 options_.unpooled);
  if (!batch_.ids.empty()) model_.run(batch_, request_, &sums);
  for (std::size_t s = 0; s < ids_.size(); ++s) {
    std::vector<double> vector = sums.mean(static_cast<Index>(s));
    if (options_.normalize) normalize(vector);
    if (options_.dim > 0 && options_.dim < std::ssize(vector))
      vector.resize(static_cast<std::size_t>(options_.dim));
    if (options_.normalize_kept) normalize(vector);
    sink_(ids_[s], std::move(vector));
  }
  batch_ = {};
  request_ = {};
  ids_.clear();
  any_segments_ = false;
}

}  // namespace masque::probe
