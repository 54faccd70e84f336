#include "train/loss/step_loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "model/role.hpp"

namespace masque::train {

double StepLosses::mean() const {
  double sum = 0;
  for (const LossPart& part : parts) {
    if (part.factor != 0) sum += part.factor * part.report.mean();
  }
  return sum;
}

void StepLosses::add(const StepLosses& other) {
  if (parts.empty()) {
    *this = other;
    return;
  }
  MASQUE_CHECK(parts.size() == other.parts.size() && shares.size() == other.shares.size());
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].report.add(other.parts[i].report);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i].count += other.shares[i].count;
    shares[i].of += other.shares[i].of;
  }
  detections.add(other.detections);
  tokens += other.tokens;
}

void StepLosses::sum(Ranks& ranks) {
  if (ranks.count() == 1) return;
  std::vector<double> numbers;
  const auto each = [&](const auto& visit) {
    for (LossPart& part : parts) {
      LossReport& r = part.report;
      visit(r.loss), visit(r.weight), visit(r.rows), visit(r.correct), visit(r.predicted_replaced);
      visit(r.true_positives), visit(r.divergence), visit(r.coded), visit(r.sequences);
      for (double& measure : r.diversity) visit(measure);
    }
    for (Share& share : shares) visit(share.count), visit(share.of);
    visit(tokens);
  };
  each([&](const auto& number) { numbers.push_back(static_cast<double>(number)); });
  ranks.sum(std::span(numbers));
  std::size_t at = 0;
  each([&](auto& number) {
    number = static_cast<std::remove_reference_t<decltype(number)>>(numbers[at++]);
  });
}

void StepLoss::begin(std::int64_t /*step*/) {}

void StepLoss::go_on(std::int64_t /*step*/) {}

bool StepLoss::updates(Index /*parameter*/, std::int64_t /*step*/) const { return true; }

std::vector<Example> ObjectiveLoss::examples(std::span<const StepItem> items) const {
  std::vector<Example> out;
  out.reserve(items.size());
  for (const StepItem& item : items) {
    out.push_back(objective_.example(item.item, item.epoch));
    if (network_.design().head.shifted) leave_out_first_row(out.back());
  }
  return out;
}

template <class T>
void share_reward(Ranks& ranks, std::span<const Example> examples, Network<T>& network) {
  if (!network.rewards_diversity()) return;
  const auto sequences =
      std::ranges::count_if(examples, [](const Example& example) { return !example.rows.empty(); });
  network.rewarded_sequences =
      static_cast<Index>(totals(ranks, static_cast<double>(sequences), 0).weight);
}

template void share_reward(Ranks&, std::span<const Example>, Network<float>&);
template void share_reward(Ranks&, std::span<const Example>, Network<double>&);

StepLosses ObjectiveLoss::add_gradients(std::span<const StepItem> items,
                                        const DropoutOptions& dropout) {
  const std::vector<Example> batch = examples(items);
  StepLosses losses;
  losses.tokens = tokens_of(batch);
  losses.parts.emplace_back();
  Index sources = 0;
  for (const Example& example : batch) sources += std::ssize(example.source);
  const RankTotals whole = totals(ranks(), total_weight(batch), losses.tokens - sources);
  DropoutOptions own = dropout;
  own.first_row += whole.rows_before;
  if (network_.design().source) own.first_source += totals(ranks(), 0, sources).rows_before;
  share_reward(ranks(), batch, network_);
  RunOutputs<float> outputs;
  outputs.passed = passed(network_);
  if (whole.weight > 0)
    losses.parts.back().report = network_.train(batch, 1 / whole.weight, own, outputs);
  losses.sum(ranks());
  return losses;
}

StepLosses ObjectiveLoss::evaluate(std::span<const StepItem> items) {
  const std::vector<Example> batch = examples(items);
  StepLosses losses;
  losses.tokens = tokens_of(batch);
  losses.parts.push_back({"", 1, network_.evaluate(batch)});
  return losses;
}

void RankedScores::add(const RankedScores& other) {
  positive.insert(positive.end(), other.positive.begin(), other.positive.end());
  negative.insert(negative.end(), other.negative.begin(), other.negative.end());
}

double RankedScores::area() const {
  const auto bad = [](const std::vector<double>& scores) {
    return scores.empty() ||
           std::ranges::any_of(scores, [](double score) { return std::isnan(score); });
  };
  if (bad(positive) || bad(negative)) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted = negative;
  std::ranges::sort(sorted);
  double pairs = 0;
  for (const double score : positive) {
    const auto [first, end] = std::equal_range(sorted.begin(), sorted.end(), score);
    pairs += static_cast<double>(first - sorted.begin()) +
             0.5 * static_cast<double>(std::distance(first, end));
  }
  return pairs / static_cast<double>(positive.size()) / static_cast<double>(negative.size());
}

bool shares_table(model::Role role, const model::Design& own, const model::Design& other) {
  const model::RoleShape a = model::role_shape(own, role, 0);
  const model::RoleShape b = model::role_shape(other, role, 0);
  return a.rows == b.rows && a.columns == b.columns &&
         (role != model::Role::kPositionTable || own.position_offset == other.position_offset);
}

ParameterMap shared_tables(const model::Design& own, const ParameterMap& map,
                           const model::Design& other) {
  ParameterMap tables;
  for (const model::Role role : kSharedTables) {
    const Index table = map.weight(role);
    if (table != ParameterMap::kNone && shares_table(role, own, other))
      tables.set(role, false, 0, 0, table);
  }
  return tables;
}

}  // namespace masque::train
