// Keeps a run within a time: how many steps are left is decided again and again on the way.
#pragma once

#include <cstdint>
#include <optional>

#include "train/data/corpus.hpp"
#include "train/run/schedule.hpp"

namespace masque::train {

/// Decides from seconds that its owner measures; reads no clock.
///
/// It plans again after each twentieth of the time, and the more often the less is left. Speed is a
/// running mean over the last fifth of the time, or as much as is left, so that a moment does not
/// bend the schedule. The plan changes where it would miss the end by more than 2 % of the time,
/// and when the time is over one step is left: a run ends at most one step after its time, however
/// the speed of the machine changes, after some twenty changes.
class TimeBudget {
 public:
  /// `seconds` (> 0) for everything; `done` steps and `spent` seconds have passed. `speed`: steps a
  /// second that were measured; 0: unknown.
  TimeBudget(double seconds, std::int64_t done, double spent, double speed = 0);

  /// Called in front of the first step, when `spent` seconds have passed, so that its time is its
  /// own.
  void begin(double spent) { last_spent_ = spent; }
  /// Keeps `seconds` for what comes after the last step.
  void reserve(double seconds) { reserved_ = seconds; }
  /// Called after each step, when `done` steps and `spent` seconds have passed: returns how many
  /// steps the whole run should have, if others than `planned`.
  std::optional<std::int64_t> replan(std::int64_t done, std::int64_t planned, double spent);
  /// How many steps a run has that begins now, at least 1; the speed must be known.
  std::int64_t first() const;

 private:
  double left(double spent) const { return seconds_ - reserved_ - spent; }

  double seconds_;
  double reserved_ = 0;
  std::int64_t last_done_;
  double last_spent_;
  double speed_;
};

/// Returns the updates of `batch_size` sequences until `tokens` (> 0) of `corpus` were read, in the
/// order of a run with `seed`. O(sequences of an epoch).
std::int64_t steps_of_tokens(const Corpus& corpus, std::uint64_t seed, Index batch_size,
                             double tokens);

}  // namespace masque::train
