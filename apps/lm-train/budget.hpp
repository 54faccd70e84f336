// --steps and --budget: how many updates a run has.
#pragma once

#include <optional>

#include "train/run/time_budget.hpp"
#include "train_options.hpp"

namespace masque::lm_train {

/// What --budget gives to a run: one of these.
struct Budget {
  double seconds = 0;
  double tokens = 0;
  std::int64_t steps = 0;
};

/// "120s", "5m", "2h"; "10M tokens", "500k tokens"; "2000 steps". Throws UsageError.
Budget parse_budget(const std::string& text);

/// The updates of a run, and who changes their number on the way.
struct Plan {
  train::StepPlan steps;
  std::optional<train::TimeBudget> time_budget;
  double spent = 0;  ///< seconds of the budget, by processes before this one
};

/// As the options say, or as the checkpoint says with which a run goes on. `spent` is called for
/// the seconds since this process began.
Plan make_plan(const TrainOptions& options, const records::SimilarTokens& similar,
               const text::Tokenizer& tokenizer, const train::Corpus& corpus, bool goes_on,
               train::Ranks& ranks, cli::Session& session, const std::function<double()>& spent);

/// Of a run that goes on in its folder: its warm-up, unless another is given, becomes that of the
/// options; and whether it goes on to other steps than it was planned for, which are given. Throws
/// UsageError for fewer than are done.
train::PlannedSteps take_other_steps(TrainOptions& options, const Plan& plan);

}  // namespace masque::lm_train
