#include "evaluate/states/consistency.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "evaluate/score/token_distribution.hpp"
#include "evaluate/states/state_distance.hpp"

namespace masque::evaluate {

namespace {

/// One corrupted copy, in which row of the table it counts, and its sums.
struct Copy {
  std::size_t row = 0;
  Corrupted corrupted;
  double distance = 0, cosine = 0, divergence = 0, total_variation = 0;
};

/// Keeps what the text gives as it is, then compares copies with it.
class StateComparer final : public model::Observer {
 public:
  explicit StateComparer(Index rows) : plain_(static_cast<std::size_t>(rows)) {}

  /// The copies of the next run, and the request's rows at which they begin.
  void expect(std::span<Copy> copies, std::vector<Index> first_rows) {
    copies_ = copies;
    first_rows_ = std::move(first_rows);
  }

  void last_states(Index s, Index first, MatrixView<const float> x) override {
    add_states(s, first, x);
  }
  void last_states(Index s, Index first, MatrixView<const double> x) override {
    add_states(s, first, x);
  }
  void logits(Index s, Index first, MatrixView<const float> x) override { add_logits(s, first, x); }
  void logits(Index s, Index first, MatrixView<const double> x) override {
    add_logits(s, first, x);
  }

 private:
  struct Plain {
    std::vector<double> state;
    TokenDistribution prediction;
  };

  /// The row of the text that row `i` of sequence `s` is compared with.
  std::size_t original(Index s, Index i) const {
    if (copies_.empty()) return static_cast<std::size_t>(i);
    const auto at = static_cast<std::size_t>(s);
    const auto r = static_cast<std::size_t>(i - first_rows_[at]);
    return static_cast<std::size_t>(copies_[at].corrupted.kept[r]);
  }

  template <class T>
  void add_states(Index s, Index first, MatrixView<const T> x) {
    for (Index i = 0; i < x.rows; ++i) {
      Plain& plain = plain_[original(s, first + i)];
      const auto row = x.row_span(i);
      if (copies_.empty()) {
        plain.state.assign(row.begin(), row.end());
        continue;
      }
      const auto [distance, cosine] = compare_states(row, std::span<const double>(plain.state));
      Copy& copy = copies_[static_cast<std::size_t>(s)];
      copy.distance += distance;
      copy.cosine += cosine;
    }
  }

  template <class T>
  void add_logits(Index s, Index first, MatrixView<const T> x) {
    for (Index i = 0; i < x.rows; ++i) {
      Plain& plain = plain_[original(s, first + i)];
      const TokenDistribution prediction = predict<T>(x.row_span(i));
      if (copies_.empty()) {
        plain.prediction = prediction;
        continue;
      }
      Copy& copy = copies_[static_cast<std::size_t>(s)];
      copy.divergence += divergence(plain.prediction, prediction);
      copy.total_variation += total_variation(plain.prediction, prediction);
    }
  }

  std::vector<Plain> plain_;
  std::span<Copy> copies_;
  std::vector<Index> first_rows_;
};

/// Runs copies together, at most `batch_tokens` tokens at a time.
void run_copies(const model::Model& model, std::span<Copy> copies, model::Request request,
                Index batch_tokens, StateComparer& comparer) {
  for (std::size_t begin = 0, end = 0; begin < copies.size(); begin = end) {
    model::Batch batch;
    std::vector<Index> first_rows;
    request.rows.clear();
    while (end < copies.size() &&
           (end == begin ||
            std::ssize(batch.ids) + copies[end].corrupted.sequence.size() <= batch_tokens)) {
      first_rows.push_back(std::ssize(request.rows));
      const Sequence& copy = copies[end].corrupted.sequence;
      const Index first = batch.add(copy.ids, {copy.positions, copy.segments, copy.mask, {}});
      for (const Index row : copies[end].corrupted.rows) request.rows.push_back(first + row);
      ++end;
    }
    comparer.expect(copies.subspan(begin, end - begin), std::move(first_rows));
    model.run(batch, request, &comparer);
  }
}

}  // namespace

Consistency::Consistency(const model::Model& model, const ConsistencyRequest& request)
    : model_(model), request_(request) {
  for (const TokenNoise corruption : request.corruptions) {
    if (corruption == TokenNoise::kMask && !request.mask) {
      throw InputError("the tokenizer has no mask token, expected one to mask with");
    }
    for (const double rate : request.rates) {
      ConsistencyRow row;
      row.corruption = corruption;
      row.rate = rate;
      rows_.push_back(row);
    }
  }
}

void Consistency::add(const Sequence& sequence) {
  check_one_stream(sequence, model_.design());
  const Index vocab_size = model_.design().vocab_size;
  const auto numbers = selection_numbers(sequence, request_.seed, "consistency");
  const RandomStream random(request_.seed, "consistency tokens", sequence.number);
  std::vector<Copy> copies;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Copy copy{r, corrupt(sequence, numbers, rows_[r].rate, rows_[r].corruption, request_.mask,
                         random, vocab_size)};
    if (!copy.corrupted.selected.empty() && !copy.corrupted.kept.empty()) {
      copies.push_back(std::move(copy));
    } else if (!copy.corrupted.selected.empty()) {
      ++rows_[r].whole_lines;
    }
  }
  if (copies.empty()) return;
  const bool head = has_vocabulary(model_.design());
  model::Request request;
  request.logits = head;
  request.last_states = true;
  StateComparer comparer(sequence.size());
  model::Batch plain;
  plain.add(sequence.ids, {sequence.positions, sequence.segments, sequence.mask, {}});
  request.all_rows = true;
  model_.run(plain, request, &comparer);
  request.all_rows = false;
  run_copies(model_, copies, request, request_.batch_tokens, comparer);
  for (const Copy& copy : copies) {
    ConsistencyRow& row = rows_[copy.row];
    const auto count = static_cast<double>(copy.corrupted.kept.size());
    row.distance.add(copy.distance, count);
    row.cosine.add(copy.cosine, count);
    if (!head) continue;
    row.divergence.add(copy.divergence, count);
    row.total_variation.add(copy.total_variation, count);
  }
}

}  // namespace masque::evaluate
