#include "evaluate/attention/attention_totals.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"

namespace masque::evaluate {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void LinePoints::add(const LinePoints& other) {
  if (other.n == 0) return;
  const auto own = static_cast<double>(n);
  const auto more = static_cast<double>(other.n);
  const double x = other.mean_x - mean_x;
  const double y = other.mean_y - mean_y;
  const double share = own * more / (own + more);
  xx += other.xx + x * x * share;
  xy += other.xy + x * y * share;
  yy += other.yy + y * y * share;
  mean_x += n == 0 ? x : x * more / (own + more);
  mean_y += n == 0 ? y : y * more / (own + more);
  n += other.n;
}

double LinePoints::slope() const { return xx > 0 ? xy / xx : kUndefined; }

double LinePoints::slope_error() const {
  if (n < 3 || !(xx > 0)) return kUndefined;
  const double rest = std::max(0.0, yy - xy * xy / xx);
  return std::sqrt(rest / static_cast<double>(n - 2) / xx);
}

double standard_error(const Moments& moments) {
  if (moments.n < 2) return kUndefined;
  const auto n = static_cast<double>(moments.n);
  return std::sqrt(moments.sum_squares / (n - 1) / n);
}

void HeadTotals::add(const HeadTotals& other) {
  for (std::size_t f = 0; f < kHeadFields; ++f) fields[f].add(other.fields[f]);
  tokens.resize(std::max(tokens.size(), other.tokens.size()));
  for (std::size_t t = 0; t < other.tokens.size(); ++t) tokens[t].add(other.tokens[t]);
  partition.add(other.partition);
  score_spread.add(other.score_spread);
}

std::uint64_t HeadTotals::count(HeadField field) const {
  return field == HeadField::kPartitionSlope ? partition.n : (*this)[field].n;
}

double HeadTotals::mean(HeadField field) const {
  if (field == HeadField::kPartitionSlope) return partition.slope();
  return (*this)[field].n == 0 ? kUndefined : (*this)[field].mean;
}

double HeadTotals::error(HeadField field) const {
  if (field == HeadField::kPartitionSlope) return partition.slope_error();
  return standard_error((*this)[field]);
}

void StateTotals::add(const StateTotals& other) {
  residual.add(other.residual);
  cosine.add(other.cosine);
}

AttentionTotals::AttentionTotals(Index layer_count, Index head_count)
    : layers(layer_count),
      heads(head_count),
      head(static_cast<std::size_t>(layers * heads)),
      state(static_cast<std::size_t>(layers + 1)),
      divergence(static_cast<std::size_t>(layers * heads * heads)) {}

void AttentionTotals::add(const AttentionTotals& other) {
  MASQUE_CHECK(layers == other.layers && heads == other.heads);
  sentences += other.sentences;
  tokens += other.tokens;
  for (std::size_t i = 0; i < head.size(); ++i) head[i].add(other.head[i]);
  for (std::size_t i = 0; i < state.size(); ++i) state[i].add(other.state[i]);
  for (std::size_t i = 0; i < divergence.size(); ++i) divergence[i].add(other.divergence[i]);
}

}  // namespace masque::evaluate
