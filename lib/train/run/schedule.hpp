// The learning rate of each step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/name_table.hpp"

namespace masque::train {

enum class Decay { kLinear, kCosine, kConstant };

/// "linear", "cosine", "constant".
NameTable<Decay> decay_names();

/// How many updates a run has: a number at first, and others that it is given on the way.
struct StepPlan {
  /// After update `done` the run had `steps` in all.
  struct Change {
    std::int64_t done = 0;
    std::int64_t steps = 0;
  };

  std::int64_t first = 1;
  std::vector<Change> changes;  ///< done ascending, each steps > its done

  /// Updates of the whole run.
  std::int64_t steps() const { return changes.empty() ? first : changes.back().steps; }
  /// Where update `step` (from 1) stands in a run of `first` updates: what is left is stretched by
  /// each change, so that the progress goes on without a jump and ends at `first`. Exactly `step`
  /// without changes.
  double progress(std::int64_t step) const;
  /// "1000", or "1000,300:800": 1000 at first, 800 from update 300 on.
  std::string text() const;
  /// Of such a text; "0" is a run without updates. Throws UsageError.
  static StepPlan parse(std::string_view text);
};

/// Rises linearly over the first steps, then falls to `floor` at the last.
struct Schedule {
  double learning_rate = 1e-3;  ///< the largest
  std::int64_t steps = 1;       ///< StepPlan::first
  std::int64_t warmup = 0;      ///< of the run as it was planned first
  Decay decay = Decay::kLinear;
  double floor = 0;  ///< share of the largest that is left at the end
  std::vector<StepPlan::Change> changes;

  StepPlan plan() const { return {steps, changes}; }
  /// Of update `step`, from 1.
  double at(std::int64_t step) const;
  /// What it does after update `done`, in words: "goes on from 0.0005 as a cosine to 0 at step 40".
  std::string course_after(std::int64_t done) const;
};

}  // namespace masque::train
