#include "train/run/training_loop.hpp"

#include <chrono>
#include <exception>
#include <optional>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "base/thread/parallel.hpp"

namespace masque::train {

namespace {

using LoopClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kBetweenSaves(60);

class StepLoop {
 public:
  StepLoop(Trainer& trainer, const TrainingLoop& loop, Ranks& ranks)
      : trainer_(trainer), loop_(loop), ranks_(ranks) {}

  void run() {
    const std::exception_ptr failed = caught([&] {
      if (loop_.begin) loop_.begin();
      while (trainer_.done() < trainer_.steps()) step();
    });
    {
      // A step that a signal broke off has changed nothing: what was reached is saved. After
      // another failure the last checkpoint stays.
      const InterruptsHeld held;
      // What the ranks have only together is saved by all of them, or not.
      const bool reached = held.interrupted() && !trainer_.shards();
      if (loop_.save && (!failed || reached || signal_ != 0)) save();
      if (loop_.end) loop_.end();
    }
    // A rank that ends by a signal ends all: not before the first one has saved.
    if (failed && signal_ != 0) any(ranks_, false);
    if (failed) std::rethrow_exception(failed);
  }

 private:
  void step() {
    // A signal to one process is one to all, and all stop before the same step: who is inside of
    // one when it comes is chance, and the others would wait for its sums.
    std::optional<InterruptsPutOff> together;
    if (ranks_.count() > 1) together.emplace();
    signal_ = of_any(ranks_, noted_interrupt());
    if (signal_ != 0) throw Interrupted(signal_);
    const LoopClock::time_point begin = LoopClock::now();
    StepReport report = trainer_.step();
    report.seconds = seconds_since(begin);
    if (loop_.agree) loop_.agree();
    together.reset();
    if (loop_.report) loop_.report(report);
    bool due = loop_.save_every > 0 ? trainer_.done() % loop_.save_every == 0
                                    : LoopClock::now() - last_save_ > kBetweenSaves;
    if (trainer_.shards()) due = of_first(ranks_, due ? 1 : 0) != 0;
    if (loop_.save && due) save();
  }

  void save() {
    loop_.save();
    last_save_ = LoopClock::now();
  }

  Trainer& trainer_;
  const TrainingLoop& loop_;
  Ranks& ranks_;
  LoopClock::time_point last_save_ = LoopClock::now();
  int signal_ = 0;
};

}  // namespace

void run_steps(Trainer& trainer, const TrainingLoop& loop, Ranks& ranks) {
  StepLoop(trainer, loop, ranks).run();
}

}  // namespace masque::train
