// The learning rate of each step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/string/name_table.hpp"

namespace masque::train {

/// How the learning rate falls after the warm-up.
enum class Decay {
  kLinear,    ///< in a line
  kCosine,    ///< as half a period of a cosine
  kConstant,  ///< it does not
};

/// "linear", "cosine", "constant".
NameTable<Decay> decay_names();

/// How many updates a run has: a number at first, and others that it is given on the way.
struct StepPlan {
  /// After update `done` the run had `steps` in all.
  struct Change {
    std::int64_t done = 0;   ///< updates that had been made
    std::int64_t steps = 0;  ///< updates of the whole run from then on
  };

  std::int64_t first = 1;       ///< updates of the run as it was planned first
  std::vector<Change> changes;  ///< done ascending, each steps > its done

  /// Updates of the whole run.
  std::int64_t steps() const { return changes.empty() ? first : changes.back().steps; }
  /// Where update `step` (from 1) stands in a run of `first` updates: what is left is stretched by
  /// each change, so that the progress goes on without a jump and ends at `first`. Exactly `step`
  /// without changes.
  double progress(std::int64_t step) const;
  /// "1000", or "1000,300:800": 1000 at first, 800 from update 300 on.
  std::string text() const;
  /// The plan of such a `text`, with numbers up to 1000000000; "0" is a run without updates. Throws
  /// UsageError, about the field `steps`.
  static StepPlan parse(std::string_view text);
};

/// Rises linearly over the first `warmup` steps, then falls from `learning_rate`, in the step after
/// them, towards `learning_rate` · `floor`, which it would reach in the step after the last.
struct Schedule {
  double learning_rate = 1e-3;            ///< the largest
  std::int64_t steps = 1;                 ///< StepPlan::first
  std::int64_t warmup = 0;                ///< steps of warm-up, of the run as it was planned first
  Decay decay = Decay::kLinear;           ///< after the warm-up
  double floor = 0;                       ///< share of `learning_rate` that it falls towards
  std::vector<StepPlan::Change> changes;  ///< StepPlan::changes

  /// How many updates the run has.
  StepPlan plan() const { return {steps, changes}; }
  /// The learning rate of update `step`, from 1.
  double at(std::int64_t step) const;
  /// What it does after update `done`, in words: "continues from 0.0005 as a cosine to 1e-06 at
  /// step 40".
  std::string course_after(std::int64_t done) const;
};

}  // namespace masque::train
