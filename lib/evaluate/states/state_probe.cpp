#include "evaluate/states/state_probe.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "evaluate/score/corrupt.hpp"
#include "evaluate/states/ridge.hpp"
#include "records/record.hpp"

namespace masque::evaluate {

namespace {

/// Hands every state of one sequence to a function of (state, row, features).
template <class Use>
class EachState final : public model::Observer {
 public:
  explicit EachState(Use use) : use_(std::move(use)) {}
  void hidden_states(Index, Index state, MatrixView<const float> x) override { use_(state, x); }
  void hidden_states(Index, Index state, MatrixView<const double> x) override { use_(state, x); }

 private:
  Use use_;
};

template <class Use>
void run_states(const model::Model& model, const Sequence& sequence, Use use) {
  model::Batch batch;
  batch.add(sequence.ids,
            {sequence.positions, sequence.segments, sequence.mask, {}, sequence.source});
  model::Request request;
  request.hidden_states = true;
  EachState<Use> observer(std::move(use));
  model.run(batch, request, &observer);
}

/// The tokens of a text that are hidden: the share `rate` with the smallest numbers.
std::vector<Index> hidden_rows(std::span<const double> numbers, double rate) {
  std::vector<Index> rows;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] < 1) rows.push_back(static_cast<Index>(i));
  }
  const auto wanted = std::max(1.0, std::round(rate * static_cast<double>(rows.size())));
  std::sort(rows.begin(), rows.end(), [&](Index a, Index b) {
    return numbers[static_cast<std::size_t>(a)] < numbers[static_cast<std::size_t>(b)];
  });
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(wanted)));
  std::sort(rows.begin(), rows.end());
  return rows;
}

/// Which values count as classes, in order.
std::vector<Index> frequent(std::span<const Index> values, Index most) {
  std::map<Index, Index> counts;
  for (const Index v : values) ++counts[v];
  std::vector<Index> classes;
  classes.reserve(counts.size());
  for (const auto& entry : counts) classes.push_back(entry.first);
  std::stable_sort(classes.begin(), classes.end(),
                   [&](Index a, Index b) { return counts.at(a) > counts.at(b); });
  classes.resize(std::min(classes.size(), static_cast<std::size_t>(most)));
  std::sort(classes.begin(), classes.end());
  return classes;
}

/// The rows that a fit uses, and their targets as numbers or as one column a class.
struct Task {
  std::vector<Index> rows;
  std::vector<Index> answers;  ///< the position, or the class
  std::vector<Index> folds;
  Matrix<double> targets;
  bool number = false;

  double right(MatrixView<const double> predictions) const {
    double hits = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto row = predictions.row_span(static_cast<Index>(r));
      const double guess =
          number ? std::round(row[0])
                 : static_cast<double>(std::max_element(row.begin(), row.end()) - row.begin());
      hits += guess == static_cast<double>(answers[r]) ? 1 : 0;
    }
    return hits / static_cast<double>(rows.size());
  }
};

}  // namespace

StateProbe::StateProbe(const model::Model& model, const ProbeRequest& request)
    : model_(model), request_(request) {
  if (request.at_mask && !request.mask) {
    throw InputError("the tokenizer has no mask token, expected one to hide tokens with");
  }
  states_.resize(static_cast<std::size_t>(model.design().num_hidden_layers) + 1);
}

bool StateProbe::full() const { return std::ssize(targets_) >= request_.rows; }

void StateProbe::add(const Sequence& sequence) {
  if (full()) return;
  check_one_stream(sequence, model_.design());
  Sequence changed = sequence;
  auto numbers = selection_numbers(sequence, request_.seed, "probe");
  if (request_.target == ProbeTarget::kLabel) {
    if (sequence.labels.size() != sequence.ids.size())
      throw InputError(
          fmt::format("sequence {}: no labels, expected one for each token", sequence.number));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (sequence.labels[i] == records::kNoLabel) numbers[i] = 2;
    }
  }
  std::vector<Index> rows = hidden_rows(numbers, request_.at_mask ? request_.rate : 1);
  if (request_.at_mask) {
    for (const Index row : rows) changed.ids[static_cast<std::size_t>(row)] = *request_.mask;
  }
  // The last text hides as many tokens as the others, even where fewer states are kept.
  rows.resize(std::min(rows.size(), static_cast<std::size_t>(request_.rows) - targets_.size()));
  for (const Index row : rows) {
    const auto at = static_cast<std::size_t>(row);
    switch (request_.target) {
      case ProbeTarget::kPosition:
        targets_.push_back(sequence.positions.empty() ? row : sequence.positions[at]);
        break;
      case ProbeTarget::kToken: targets_.push_back(sequence.ids[at]); break;
      case ProbeTarget::kSegment:
        targets_.push_back(sequence.segments.empty() ? 0 : sequence.segments[at]);
        break;
      case ProbeTarget::kLabel: targets_.push_back(sequence.labels[at]); break;
    }
    texts_.push_back(added_);
  }
  if (rows.empty()) return;
  ++added_;
  run_states(model_, changed, [&](Index state, auto x) {
    std::vector<float>& kept = states_[static_cast<std::size_t>(state)];
    for (const Index row : rows) {
      for (const auto v : x.row_span(row)) kept.push_back(static_cast<float>(v));
    }
  });
}

std::vector<ProbeRow> StateProbe::fit() const {
  Task task;
  task.number = request_.target == ProbeTarget::kPosition;
  const Index every = std::ssize(targets_);
  const std::vector<Index> classes =
      frequent(targets_, request_.target == ProbeTarget::kToken ? request_.classes : every);
  if (classes.size() < 2)
    throw InputError("fewer than two different targets, expected at least two");
  std::map<Index, Index> counts;
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), targets_[i]);
    if (found == classes.end() || *found != targets_[i]) continue;
    task.rows.push_back(static_cast<Index>(i));
    task.answers.push_back(task.number ? targets_[i] : found - classes.begin());
    task.folds.push_back(texts_[i] % request_.folds);
    ++counts[targets_[i]];
  }
  if (std::adjacent_find(task.folds.begin(), task.folds.end(), std::not_equal_to<>()) ==
      task.folds.end()) {
    throw InputError("all texts are in one fold, expected texts in at least two");
  }
  const auto n = std::ssize(task.rows);
  task.targets = Matrix<double>::zero(n, task.number ? 1 : std::ssize(classes));
  Index most = 0;
  for (const auto& entry : counts) most = std::max(most, entry.second);
  for (Index r = 0; r < n; ++r) {
    const Index answer = task.answers[static_cast<std::size_t>(r)];
    task.targets.view().at(r, task.number ? 0 : answer) =
        task.number ? static_cast<double>(answer) : 1;
  }
  std::vector<ProbeRow> result;
  for (std::size_t layer = 0; layer < states_.size(); ++layer) {
    const Index width = std::ssize(states_[layer]) / every;
    Matrix<float> features(n, width);
    for (Index r = 0; r < n; ++r) {
      const float* from = states_[layer].data() + task.rows[static_cast<std::size_t>(r)] * width;
      std::copy(from, from + width, features.view().row(r));
    }
    const Matrix<double> predictions = ridge_predictions(
        features.view(), task.targets.view(), task.folds, request_.folds, request_.ridge);
    ProbeRow row;
    row.layer = static_cast<Index>(layer);
    row.rows = static_cast<std::uint64_t>(n);
    row.r_squared = r_squared(task.targets.view(), predictions.view());
    row.accuracy = task.right(predictions.view());
    row.baseline = static_cast<double>(most) / static_cast<double>(n);
    result.push_back(row);
  }
  return result;
}

std::vector<ZeroRow> zero_probe(const model::Model& model, TokenId token, Index length,
                                const std::optional<mask::Mask>& mask) {
  Sequence sequence;
  sequence.mask = mask;
  sequence.ids.assign(static_cast<std::size_t>(length), token);
  std::vector<ZeroRow> rows;
  run_states(model, sequence, [&](Index state, auto x) {
    ZeroRow row;
    row.layer = state;
    for (Index c = 0; c < x.columns; ++c) {
      double low = x.at(0, c);
      double high = low;
      for (Index i = 0; i < x.rows; ++i) {
        low = std::min<double>(low, x.at(i, c));
        high = std::max<double>(high, x.at(i, c));
      }
      row.spread = std::max(row.spread, high - low);
      row.scale = std::max({row.scale, std::abs(low), std::abs(high)});
    }
    rows.push_back(row);
  });
  return rows;
}

}  // namespace masque::evaluate
