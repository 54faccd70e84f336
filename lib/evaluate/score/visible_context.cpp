#include "evaluate/score/visible_context.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "evaluate/score/corrupt.hpp"
#include "evaluate/score/model_kinds.hpp"
#include "evaluate/score/sequence.hpp"

namespace masque::evaluate {

namespace {

/// How many rows a number has at most: all tokens, and distances of up to 2^62.
constexpr std::size_t kDistances = 64;

/// How far each token is from the nearest visible one, as VisibleContextRow has it; −1 without one.
std::vector<Index> distances_of(Index size, const std::vector<Index>& visible) {
  std::vector<Index> nearest(static_cast<std::size_t>(size), size);
  for (const Index i : visible) nearest[static_cast<std::size_t>(i)] = 0;
  for (std::size_t i = 1; i < nearest.size(); ++i)
    nearest[i] = std::min(nearest[i], nearest[i - 1] + 1);
  for (std::size_t i = nearest.size(); i-- > 1;)
    nearest[i - 1] = std::min(nearest[i - 1], nearest[i] + 1);
  for (Index& distance : nearest) {
    const auto below = static_cast<std::uint64_t>(std::max<Index>(distance - 1, 0));
    distance = visible.empty() ? -1 : static_cast<Index>(std::bit_width(below));
  }
  return nearest;
}

/// Places of the text in a random order.
std::vector<Index> random_order(const Sequence& sequence, std::uint64_t seed, Index draw) {
  const std::vector<double> numbers =
      selection_numbers(sequence, seed, fmt::format("visible tokens {}", draw));
  std::vector<Index> order(
      static_cast<std::size_t>(sequence.size() - sequence.prefix - sequence.suffix));
  std::iota(order.begin(), order.end(), sequence.prefix);
  std::ranges::stable_sort(order, {},
                           [&](Index i) { return numbers[static_cast<std::size_t>(i)]; });
  return order;
}

}  // namespace

std::string VisibleContextRow::distance_text() const {
  if (distance < 0) return "all";
  const Index most = Index{1} << distance;
  return most <= 2 ? fmt::format("{}", most) : fmt::format("{}-{}", most / 2 + 1, most);
}

VisibleContext::VisibleContext(const model::Model& model, const model::ModelOptions& options,
                               const VisibleContextRequest& request)
    : request_(request),
      kind_(default_kind(model.design(), options)),
      two_streams_(model.design().streams == model::Streams::kTwo),
      runner_(model, request.batch_tokens),
      losses_(request.visible.size(), std::vector<RatioMean>(kDistances)) {
  const bool tta = kind_ == ScoreKind::kTta && model.design().streams != model::Streams::kTowers;
  if (kind_ != ScoreKind::kPll && !tta) {
    throw InputError(
        "the model cannot predict from an arbitrary set of tokens, expected a masked model, a T-TA "
        "or a model of two streams");
  }
  check_kind(kind_, model.design(), options);
  if (kind_ == ScoreKind::kPll && !two_streams_ && !request.mask)
    throw InputError("the tokenizer has no mask token, expected one to hide tokens with");
}

void VisibleContext::add(const Sequence& sequence) {
  if (sequence.mask)
    throw InputError(
        "the sequence has its own mask or one that depends on its words, expected neither");
  Pending& pending = pending_.emplace_back();
  pending.last_job = UINT64_MAX;
  for (Index draw = 0; draw < request_.draws; ++draw) {
    const std::vector<Index> order = random_order(sequence, request_.seed, draw);
    for (std::size_t v = 0; v < request_.visible.size(); ++v) {
      if (request_.visible[v] < std::ssize(order)) add_pass(sequence, order, v, pending);
    }
  }
  pending.last_job = jobs_;
  deliver();
}

void VisibleContext::add_pass(const Sequence& sequence, const std::vector<Index>& order,
                              std::size_t visible, Pending& pending) {
  const auto seen = order.begin() + static_cast<std::ptrdiff_t>(request_.visible[visible]);
  std::vector<Index> hidden(seen, order.end());
  std::ranges::sort(hidden);
  const std::vector<Index> distances = distances_of(sequence.size(), {order.begin(), seen});
  Pass& pass = pending.passes.emplace_back();
  pass.visible = visible;
  pass.log_probabilities.resize(hidden.size());
  Job job;
  job.ids = sequence.ids;
  job.positions = sequence.positions;
  job.segments = sequence.segments;
  job.rows = hidden;
  for (std::size_t i = 0; i < hidden.size(); ++i) {
    const auto at = static_cast<std::size_t>(hidden[i]);
    job.targets.push_back(sequence.ids[at]);
    job.out.push_back(&pass.log_probabilities[i]);
    pass.distances.push_back(distances[at]);
    if (kind_ == ScoreKind::kPll && !two_streams_) job.ids[at] = *request_.mask;
  }
  if (two_streams_) {
    job.mask = hiding(sequence.size(), hidden, true);
    job.query_mask = hiding(sequence.size(), hidden, false);
  } else if (kind_ == ScoreKind::kTta) {
    job.mask = hiding(sequence.size(), hidden, false);
  }
  runner_.add(std::move(job));
  ++jobs_;
}

void VisibleContext::deliver() {
  while (!pending_.empty() && pending_.front().last_job <= runner_.done()) {
    take(pending_.front());
    pending_.pop_front();
  }
}

void VisibleContext::take(const Pending& pending) {
  for (std::size_t v = 0; v < losses_.size(); ++v) {
    std::vector<double> values(kDistances, 0), counts(kDistances, 0);
    const auto add = [&](Index distance, double value) {
      values[static_cast<std::size_t>(distance + 1)] += value;
      ++counts[static_cast<std::size_t>(distance + 1)];
    };
    for (const Pass& pass : pending.passes) {
      if (pass.visible != v) continue;
      for (std::size_t i = 0; i < pass.distances.size(); ++i) {
        add(-1, -pass.log_probabilities[i]);
        if (pass.distances[i] >= 0) add(pass.distances[i], -pass.log_probabilities[i]);
      }
    }
    for (std::size_t d = 0; d < kDistances; ++d) losses_[v][d].add(values[d], counts[d]);
  }
}

void VisibleContext::flush() {
  runner_.run();
  deliver();
}

std::vector<VisibleContextRow> VisibleContext::rows() const {
  std::vector<VisibleContextRow> rows;
  for (std::size_t v = 0; v < losses_.size(); ++v) {
    for (std::size_t d = 0; d < kDistances; ++d) {
      if (losses_[v][d].lines == 0) continue;
      rows.push_back({request_.visible[v], static_cast<Index>(d) - 1, losses_[v][d]});
    }
  }
  return rows;
}

}  // namespace masque::evaluate
