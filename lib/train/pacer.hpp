// Keeps a run within a time: how many steps are left is asked again and again on the way.
#pragma once

#include <cstdint>
#include <optional>

#include "train/corpus.hpp"
#include "train/schedule.hpp"

namespace masque::train {

/// Decides from seconds that its owner measures; reads no clock.
///
/// It looks after each twentieth of the time, and the more often the less is left: speed is that of
/// the steps since it looked last. The plan changes where it would miss the end by more than 2 % of
/// the time, and when the time is over one step is left. So a run takes at most a few percent longer
/// than its time or one step, however the speed of the machine changes, with some twenty changes.
class Pacer {
 public:
  /// `seconds` for everything; `done` steps and `spent` seconds lie behind.
  Pacer(double seconds, std::int64_t done, double spent);

  /// Seconds that are kept for what comes behind the last step.
  void reserve(double seconds) { reserved_ = seconds; }
  /// Behind each step: how many the run should have, if others than planned.
  std::optional<std::int64_t> look(std::int64_t done, std::int64_t planned, double spent);
  /// How many a run has that begins now, of which a second takes `speed`.
  std::int64_t first(double speed, double spent) const;

 private:
  double left(double spent) const { return seconds_ - reserved_ - spent; }

  double seconds_;
  double reserved_ = 0;
  std::int64_t last_done_;
  double last_spent_;
};

/// Updates of `batch_size` sequences until as many tokens of the corpus were read, in the order of a
/// run. tokens > 0. O(tokens of an epoch).
std::int64_t steps_of_tokens(const Corpus& corpus, std::uint64_t seed, Index batch_size,
                             double tokens);

}  // namespace masque::train
