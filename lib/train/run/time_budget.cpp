#include "train/run/time_budget.hpp"

#include <algorithm>
#include <cmath>

#include "base/divide.hpp"
#include "base/error.hpp"
#include "train/data/order.hpp"

namespace masque::train {

namespace {

constexpr double kPlanShare = 0.05;    // of the time, between two plans
constexpr double kLeftShare = 0.25;    // of what is left, if that is less
constexpr double kMissedShare = 0.02;  // of the time, that a plan may miss
constexpr double kMeanShare = 0.2;     // of the time, over which speed is a mean
constexpr std::int64_t kMostSteps = 1'000'000'000;

}  // namespace

TimeBudget::TimeBudget(double seconds, std::int64_t done, double spent, double speed)
    : seconds_(seconds), last_done_(done), last_spent_(spent), speed_(speed) {
  MASQUE_CHECK(seconds > 0);
}

std::int64_t TimeBudget::first() const {
  MASQUE_CHECK(speed_ > 0);
  const double steps = std::max(1.0, speed_ * left(last_spent_));
  return static_cast<std::int64_t>(std::min(steps, static_cast<double>(kMostSteps)));
}

std::optional<std::int64_t> TimeBudget::replan(std::int64_t done, std::int64_t planned,
                                               double spent) {
  if (done >= planned || done <= last_done_) return std::nullopt;
  const double remaining = left(spent), window = spent - last_spent_;
  if (remaining > 0 && window < std::min(kPlanShare * seconds_, kLeftShare * remaining))
    return std::nullopt;
  // Two plans may be less than a clock's tick apart.
  const double now = static_cast<double>(done - last_done_) / std::max(window, 1e-9);
  const double over = std::max(1e-9, std::min(kMeanShare * seconds_, remaining));
  speed_ = speed_ > 0 ? speed_ + (1 - std::exp(-window / over)) * (now - speed_) : now;
  last_done_ = done;
  last_spent_ = spent;
  const double possible =
      std::clamp(std::floor(remaining * speed_), 1.0, static_cast<double>(kMostSteps - done));
  const std::int64_t steps = done + static_cast<std::int64_t>(possible);
  const double missed = static_cast<double>(std::abs(steps - planned)) / speed_;
  if (steps == planned || (remaining > 0 && missed <= kMissedShare * seconds_)) return std::nullopt;
  return steps;
}

std::int64_t steps_of_tokens(const Corpus& corpus, std::uint64_t seed, Index batch_size,
                             double tokens) {
  MASQUE_CHECK(tokens > 0 && corpus.tokens() > 0);
  const EpochOrder order(corpus.size(), seed);
  const double epochs = std::floor(tokens / static_cast<double>(corpus.tokens()));
  double read = epochs * static_cast<double>(corpus.tokens());
  auto sequences = static_cast<std::uint64_t>(epochs) * static_cast<std::uint64_t>(corpus.size());
  while (read < tokens) read += static_cast<double>(corpus.length(order.at(sequences++).item));
  const auto batch = static_cast<std::uint64_t>(batch_size);
  return static_cast<std::int64_t>(divide_up(sequences, batch));
}

}  // namespace masque::train
