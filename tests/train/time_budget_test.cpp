// The number of steps: plans, their text, and how a time is kept.
#include "train/run/time_budget.hpp"

#include <cmath>
#include <functional>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "support/message.hpp"

namespace masque::test {

using namespace masque::train;

namespace {

struct Kept {
  StepPlan plan;
  double seconds = 0;
};

/// A run whose steps take what `seconds_of` says at a time, and that was measured once before.
Kept keep(double budget, const std::function<double(double)>& seconds_of, double reserve = 0) {
  double now = budget / 10;
  TimeBudget time_budget(budget, 0, now, 1 / seconds_of(now));
  time_budget.reserve(reserve);
  Kept kept;
  kept.plan.first = time_budget.first();
  for (std::int64_t done = 0; done < kept.plan.steps();) {
    now += seconds_of(now);
    ++done;
    if (const auto steps = time_budget.replan(done, kept.plan.steps(), now)) {
      CHECK(*steps > done);
      kept.plan.changes.push_back({done, *steps});
    }
  }
  kept.seconds = now;
  return kept;
}

}  // namespace

TEST_CASE("a time is kept when the machine becomes slow, fast, or both in turn") {
  const auto steady = [](double) { return 0.01; };
  const Kept even = keep(60, steady);
  CHECK(even.plan.changes.empty());
  CHECK(even.seconds == doctest::Approx(60).epsilon(0.02));

  const std::vector<std::function<double(double)>> machines = {
      [](double now) { return now < 20 ? 0.01 : 0.08; },
      [](double now) { return now < 20 ? 0.08 : 0.01; },
      [](double now) { return now < 57 ? 0.01 : 0.4; },
      [](double now) { return std::fmod(now, 4) < 2 ? 0.01 : 0.05; },
      [](double now) { return 0.01 + 0.001 * now; },
      [](double now) { return std::fmod(now, 10) < 1 ? 1.0 : 0.02; },
  };
  for (std::size_t m = 0; m < machines.size(); ++m) {
    CAPTURE(m);
    const Kept kept = keep(60, machines[m]);
    CHECK(kept.seconds > 60 * 0.95);
    CHECK(kept.seconds < 60 * 1.001 + 2 * machines[m](kept.seconds - 0.001));
    CHECK(!kept.plan.changes.empty());
    CHECK(kept.plan.changes.size() < 40);
    // The text has all of it.
    const StepPlan again = StepPlan::parse(kept.plan.text());
    for (std::int64_t s = 1; s <= kept.plan.steps(); ++s)
      REQUIRE(again.progress(s) == kept.plan.progress(s));
  }
  const Kept saved = keep(60, steady, 6);
  CHECK(saved.seconds == doctest::Approx(54).epsilon(0.02));
}

TEST_CASE("steps longer than the time: one of them") {
  const Kept kept = keep(1, [](double) { return 10.0; });
  CHECK(kept.plan.steps() == 1);
}

TEST_CASE("a changed plan goes on where it was and ends where the first one ended") {
  Schedule plain{1, 1000, 50, Decay::kLinear, 0, {}};
  Schedule changed = plain;
  changed.changes = {{300, 500}, {400, 2000}};
  for (std::int64_t s = 1; s <= 300; ++s) CHECK(changed.at(s) == plain.at(s));
  CHECK(changed.plan().progress(300) == 300);
  // 700 places in 200 steps, then what is left of them in 1600.
  CHECK(changed.plan().progress(400) == 650);
  CHECK(changed.plan().progress(1200) == 825);
  CHECK(changed.plan().progress(2000) == 1000);
  CHECK(changed.at(2000) == plain.at(1000));
  for (std::int64_t s = 52; s <= 2000; ++s) CHECK(changed.at(s) < changed.at(s - 1));
}

TEST_CASE("plans as text") {
  CHECK(StepPlan::parse("1000").text() == "1000");
  CHECK(StepPlan::parse("1000").steps() == 1000);
  CHECK(StepPlan::parse("0").steps() == 0);
  CHECK(StepPlan::parse("1000,300:800,301:302").text() == "1000,300:800,301:302");
  CHECK(StepPlan::parse("1000,300:800").steps() == 800);
  for (const char* bad :
       {"", "00", "0,1:2", "-1", "x", "10 ", "10,", "10,3", "10,3:", "10,3:3", "10,10:20",
        "10,3:20,3:30", "10,3:8,9:20", "1000000001", "10;3:20", "10,0:5"}) {
    CAPTURE(bad);
    const std::string message = message_of<UsageError>([&] { StepPlan::parse(bad); });
    CHECK(message.starts_with("steps: found '"));
  }
}

TEST_CASE("steps of so many tokens") {
  Corpus corpus;
  const std::vector<TokenId> ids(9, 1);
  for (std::size_t n : {3U, 9U, 5U}) corpus.add(std::span(ids).first(n));
  // Epochs of 17 tokens, three sequences.
  CHECK(steps_of_tokens(corpus, 1, 1, 17) == 3);
  CHECK(steps_of_tokens(corpus, 1, 1, 170) == 30);
  CHECK(steps_of_tokens(corpus, 1, 4, 170) == 8);
  CHECK(steps_of_tokens(corpus, 1, 1, 1) == 1);
  const std::int64_t steps = steps_of_tokens(corpus, 7, 1, 40);
  CHECK(steps > 6);
  CHECK(steps <= 9);
}

}  // namespace masque::test
