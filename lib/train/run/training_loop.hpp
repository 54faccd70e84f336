// The loop of every training: steps, checkpoints on the way, and a clean end after a signal.
#pragma once

#include <cstdint>
#include <functional>

#include "train/run/trainer.hpp"

namespace masque::train {

/// What a loop does besides steps. A function that is empty is left out.
struct TrainingLoop {
  /// Before the first step.
  std::function<void()> begin = {};
  /// After each step, on all ranks at the same step and with signals put off: for what all of them
  /// decide together, as another number of steps.
  std::function<void()> agree = {};
  /// After each step, and after `agree`.
  std::function<void(const StepReport& report)> report = {};
  /// Writes a checkpoint: after every `save_every` steps, else once a minute; at the end; and when
  /// a signal stopped the loop. Another failure leaves the last checkpoint as it is. Called on all
  /// ranks; of a trainer that shards() its state at the same step.
  std::function<void()> save = {};
  std::int64_t save_every = 0;  ///< steps; 0: by the clock
  /// After the last checkpoint of this process, however the steps ended; signals are held.
  std::function<void()> end = {};
};

/// Takes the steps that the schedule of `trainer` has left, with the functions of `loop`. `ranks`
/// are the trainer's; a signal to one of several stops all of them before the same step. Throws
/// Interrupted, and what a step or a function of `loop` throws. For one thread.
void run_steps(Trainer& trainer, const TrainingLoop& loop, Ranks& ranks = one_rank());

}  // namespace masque::train
