#include "train/run/schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/string/parse_number.hpp"

namespace masque::train {

NameTable<Decay> decay_names() {
  static constexpr std::array<std::pair<std::string_view, Decay>, 3> kNames{
      {{"linear", Decay::kLinear}, {"cosine", Decay::kCosine}, {"constant", Decay::kConstant}}};
  return kNames;
}

double StepPlan::progress(std::int64_t step) const {
  double begin_progress = 0;
  std::int64_t begin = 0, end = first;
  const auto at = [&](std::int64_t s) {
    if (begin == 0) return static_cast<double>(s);
    return begin_progress + (static_cast<double>(first) - begin_progress) *
                                static_cast<double>(s - begin) / static_cast<double>(end - begin);
  };
  for (const Change& change : changes) {
    if (step <= change.done) break;
    begin_progress = at(change.done);
    begin = change.done;
    end = change.steps;
  }
  return at(step);
}

std::string StepPlan::text() const {
  std::string text = std::to_string(first);
  for (const Change& change : changes) text += fmt::format(",{}:{}", change.done, change.steps);
  return text;
}

StepPlan StepPlan::parse(std::string_view text) {
  constexpr std::int64_t kMost = 1'000'000'000;
  std::string_view rest = text;
  const auto fail = [&]() -> std::int64_t {
    throw UsageError(
        fmt::format("{}: found '{}', expected a number from 0 to {}, or the plan that a run with "
                    "{} printed: 1000,300:800",
                    field("steps"), escape(std::string(text)), kMost, field("budget")));
  };
  const auto number = [&] {
    const auto n = take_number<std::int64_t>(rest);
    return n && *n >= 1 && *n <= kMost ? *n : fail();
  };
  const auto skip = [&](char expected) {
    if (!rest.starts_with(expected)) fail();
    rest.remove_prefix(1);
  };
  StepPlan plan;
  if (text == "0") return {.first = 0, .changes = {}};
  plan.first = number();
  std::int64_t before = 0;
  while (!rest.empty()) {
    skip(',');
    Change change;
    change.done = number();
    skip(':');
    change.steps = number();
    if (change.done <= before || change.done >= plan.steps() || change.steps <= change.done) fail();
    before = change.done;
    plan.changes.push_back(change);
  }
  return plan;
}

std::string Schedule::course_after(std::int64_t done) const {
  const std::int64_t end = plan().steps();
  if (done >= end) return "is at the end of its schedule";
  const std::string from = fmt::format("continues from {:.4g}", at(done + 1));
  if (decay == Decay::kConstant) {
    return done + 1 < warmup
               ? fmt::format("{} to {:.4g} at step {} and stays there", from, learning_rate, warmup)
               : fmt::format("stays at {:.4g} until step {}", at(done + 1), end);
  }
  const std::string rise =
      done + 1 < warmup ? fmt::format(" to {:.4g} at step {}, then", learning_rate, warmup) : "";
  return fmt::format("{}{} {} to {:.4g} at step {}", from, rise,
                     decay == Decay::kLinear ? "linearly" : "as a cosine", at(end), end);
}

double Schedule::at(std::int64_t step) const {
  const double progress = plan().progress(step), begin = static_cast<double>(warmup);
  if (progress <= begin) return learning_rate * progress / begin;
  if (decay == Decay::kConstant || steps <= warmup) return learning_rate;
  // 1 at the first step after the warm-up, 0 after the last.
  const double left = std::clamp(
      (static_cast<double>(steps) - progress + 1) / static_cast<double>(steps - warmup), 0.0, 1.0);
  const double shape =
      decay == Decay::kLinear ? left : 0.5 * (1 - std::cos(std::numbers::pi * left));
  return learning_rate * (floor + (1 - floor) * shape);
}

}  // namespace masque::train
