#include "budget.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"
#include "base/string/split.hpp"

namespace masque::lm_train {

namespace {

constexpr double kTrialSeconds = 2;
constexpr std::int64_t kDefaultSteps = 1000;
constexpr double kMostSteps = 1e9;

[[noreturn]] void refuse_folder(const std::string& folder, const char* name) {
  throw InputError(folder, fmt::format("no setting '{}', expected the folder of a run; a new run "
                                       "starts with its model and moments by {} {} {}",
                                       name, field("init"), escape(folder), field("init_moments")));
}

template <class Number>
Number saved_number(const std::string& folder, const char* name) {
  const auto text = train::TrainingRun::saved_setting(folder, name);
  const auto number = text ? parse_number<Number>(*text) : std::nullopt;
  if (!number) refuse_folder(folder, name);
  return *number;
}

/// What goes on with the run in the folder.
Plan saved_plan(const TrainOptions& o, double seconds) {
  const auto setting = [&](const char* name) {
    const auto found = train::TrainingRun::saved_setting(o.output, name);
    if (!found) refuse_folder(o.output, name);
    return *found;
  };
  Plan plan;
  plan.steps = train::StepPlan::parse(setting("steps"));
  const std::optional<double> spent = train::TrainingRun::spent_of(o.output);
  if (!spent) {
    if (setting("step") == std::to_string(plan.steps.steps())) return plan;  // nothing is left
    throw UsageError(fmt::format("{}: the run in {} had no time budget; continue it with {} {}",
                                 field("budget"), o.output, field("steps"), setting("steps")));
  }
  plan.spent = *spent;
  plan.time_budget.emplace(seconds, saved_number<std::int64_t>(o.output, "step"), plan.spent);
  return plan;
}

}  // namespace

train::PlannedSteps take_other_steps(TrainOptions& o, const Plan& plan) {
  using train::PlannedSteps;
  // The usual one is a share of the steps, which may have been others when it was there.
  if (!o.warmup) o.warmup = saved_number<std::int64_t>(o.output, "warmup");
  // What --budget printed is the text of one run; so is a time.
  if ((!o.steps && !o.budget) || plan.time_budget || !plan.steps.changes.empty())
    return PlannedSteps::kSame;
  if (train::TrainingRun::saved_setting(o.output, "steps") == plan.steps.text())
    return PlannedSteps::kSame;
  const auto done = saved_number<std::int64_t>(o.output, "step");
  if (plan.steps.first < done) {
    throw UsageError(fmt::format("{} {}: {} is already at step {}; expected at least that",
                                 field(o.steps ? "steps" : "budget"),
                                 o.steps ? *o.steps : *o.budget, o.output, done));
  }
  return PlannedSteps::kOthers;
}

Budget parse_budget(const std::string& text) {
  std::string_view unit = text;
  const double number = take_number<double>(unit).value_or(0);
  double scale = 1;
  const auto ends = [&](std::string_view word) {
    if (!unit.ends_with(word)) return false;
    unit.remove_suffix(word.size());
    unit = trim(unit);
    if (unit == "k" || unit == "K") scale = 1e3;
    if (unit == "M") scale = 1e6;
    if (unit == "G") scale = 1e9;
    return unit.empty() || scale > 1;
  };
  Budget budget;
  const bool positive = number > 0;
  if (const auto seconds = commands::find_seconds(text)) {
    budget.seconds = *seconds;
  } else if (positive && ends("tokens")) {
    budget.tokens = std::ceil(number * scale);
  } else if (positive && ends("steps") && number * scale <= kMostSteps) {
    budget.steps = static_cast<std::int64_t>(std::ceil(number * scale));
  }
  if (!(budget.seconds + budget.tokens + static_cast<double>(budget.steps) > 0) ||
      budget.tokens > 1e15) {
    throw UsageError(fmt::format(
        "{}: found '{}', expected a time (120s, 5m or 2h), tokens (10M tokens) or steps (2k steps)",
        field("budget"), escape(text)));
  }
  return budget;
}

Plan make_plan(const TrainOptions& o, const records::SimilarTokens& similar,
               const text::Tokenizer& tokenizer, const train::Corpus& corpus, bool goes_on,
               train::Ranks& ranks, cli::Session& session, const std::function<double()>& spent) {
  if (o.steps && o.budget)
    throw UsageError(fmt::format("{} and {} cannot be combined; use one of them", field("steps"),
                                 field("budget")));
  Plan plan;
  plan.steps.first = kDefaultSteps;
  if (o.steps) plan.steps = train::StepPlan::parse(*o.steps);
  if (!o.budget) return plan;
  const Budget budget = parse_budget(*o.budget);
  if (budget.steps > 0) plan.steps.first = budget.steps;
  if (budget.tokens > 0) {
    if (budget.tokens / static_cast<double>(corpus.longest() * o.batch_size) > kMostSteps)
      throw UsageError(
          fmt::format("{}: gives more than {} steps, expected fewer", field("budget"), kMostSteps));
    plan.steps.first = train::steps_of_tokens(corpus, o.common.seed, o.batch_size, budget.tokens);
    session.note(fmt::format("--steps {}", plan.steps.first));
  }
  if (budget.seconds == 0) return plan;
  if (o.switch_step) {
    throw UsageError(
        fmt::format("{} with a time and {} cannot be combined: the stages differ in speed; use {}",
                    field("budget"), field("switch"), field("steps")));
  }
  if (goes_on) return saved_plan(o, budget.seconds);
  const double trial = std::min(kTrialSeconds, budget.seconds / 10);
  const double speed =
      train::measure_speed(run_options(o, similar, {}), tokenizer, corpus, trial, ranks);
  const double now = train::of_first(ranks, spent());
  plan.time_budget.emplace(budget.seconds, 0, now, speed);
  plan.steps.first = plan.time_budget->first();
  session.note(fmt::format("{:.2f} steps/s: planning {} steps", speed, plan.steps.first));
  return plan;
}

}  // namespace masque::lm_train
