// The small languages of options, one for each first byte: what is accepted prints to a text that
// is accepted, where it has one.
#include <array>

#include "base/file/glob.hpp"
#include "base/input/line_shard.hpp"
#include "commands/number_list.hpp"
#include "commands/training_options.hpp"
#include "evaluate/score/length_policy.hpp"
#include "evaluate/score/nbest.hpp"
#include "fuzz/fuzz.hpp"
#include "length/arms.hpp"
#include "length/treatment.hpp"
#include "model/treatment.hpp"
#include "nn/normalizer.hpp"
#include "nn/position/position_scheme.hpp"
#include "surgery/positions/resize_positions.hpp"
#include "task/task.hpp"
#include "train/network/diversity.hpp"
#include "train/run/schedule.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void steps(std::string_view text) {
  const train::StepPlan plan = train::StepPlan::parse(text);
  test::require(train::StepPlan::parse(plan.text()).text() == plan.text(), "another plan");
  test::require(plan.steps() >= 0, "fewer than no steps");
  plan.progress(plan.steps());
}

void policy(std::string_view text) {
  const evaluate::LengthPolicy policy = evaluate::parse_length_policy(text);
  test::require(evaluate::policy_text(policy) == text, "another policy");
  if (policy.kind == evaluate::LengthPolicy::Kind::kError) return;  // no windows
  for (const bool left : {false, true}) evaluate::cut_windows(20, 8, policy, left);
}

void shard(std::string_view text) {
  const Shard shard = parse_shard(text);
  test::require(shard.index >= 1 && shard.index <= shard.count, "a part that is not there");
  const std::string_view lines = "a\nb\nc";
  const LineSpan span = find_shard(lines, shard);
  test::require(span.begin <= span.end && span.end <= lines.size(), "a part outside of the text");
}

void treatments(std::string_view text) {
  test::InputParts parts(text);
  length::TreatmentLists lists;
  lists.positions = parts.next();
  lists.normalizers = parts.next();
  lists.masks = parts.rest();
  length::make_treatments(lists);
}

void lengths(std::string_view text) {
  for (const Index length : length::parse_lengths("lengths", text))
    test::require(length >= 1, "a length below 1");
}

void glob(std::string_view text) {
  test::InputParts parts(text);
  const std::string_view pattern = parts.next();
  matches_glob(pattern, parts.rest());
}

constexpr std::array<test::Kind, 15> kKinds = {{
    {'S', steps},
    {'P', policy},
    {'H', shard},
    {'T', treatments},
    {'L', lengths},
    {'G', glob},
    {'n', [](std::string_view text) { nn::parse_normalizer(text); }},
    {'p', [](std::string_view text) { nn::parse_position(text); }},
    {'t', [](std::string_view text) { model::parse_position_treatment(text); }},
    {'k', [](std::string_view text) { task::parse_task(text); }},
    {'e', [](std::string_view text) { surgery::parse_position_extension(text); }},
    {'d', [](std::string_view text) { train::parse_diversity(text); }},
    {'z', [](std::string_view text) { evaluate::parse_length_normalization(text); }},
    {'s', [](std::string_view text) { commands::parse_seconds(text); }},
    {'l', [](std::string_view text) { commands::parse_numbers("rates", text, 0, 1); }},
}};

void check(std::string_view input) { test::use_by_kind(input, kKinds); }

}  // namespace

MASQUE_FUZZ_TARGET(check)
