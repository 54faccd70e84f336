// What a training leaves for a later one: result.json of lm-train classify (first byte r),
// metrics.jsonl, of which the curve is drawn again (m), and the list of a sweep (s).
#include <array>
#include <cmath>

#include "base/input/digest_line.hpp"
#include "base/string/split.hpp"
#include "fuzz/fuzz.hpp"
#include "fuzz/mutators/mutator.hpp"
#include "lm-train/classify_results.hpp"
#include "lm-train/metrics.hpp"
#include "lm-train/sweep_list.hpp"
#include "support/temp_folder.hpp"

namespace {

using namespace masque;  // NOLINT(google-build-using-namespace)

void result(std::string_view text) {
  static const test::TempFolder folder = test::TempFolder::in_memory();
  const lm_train::Settings settings = {{"seed", "0"}, {"learning_rate", "0.005"}};
  test::write_file(folder / "result.json", text);
  const auto found =
      lm_train::find_record(folder.path(), settings, train::ProblemType::kSingleLabel);
  test::require(found.has_value(), "no result in a folder that has one");
  test::write_file(folder / "result.json",
                   lm_train::record_text(settings, train::ProblemType::kSingleLabel, *found));
  const auto again =
      lm_train::find_record(folder.path(), settings, train::ProblemType::kSingleLabel);
  test::require(again && again->texts == found->texts, "another number of texts");
}

void metrics(std::string_view text) {
  lm_train::LossCurve curve;
  std::uint64_t number = 0;
  for_each_line(text, [&](std::string_view one) {
    const lm_train::MetricsLine line = lm_train::read_metrics_line(one, ++number, "fuzz");
    if (line.loss) curve.add(line.step, *line.loss);
  });
  const draw::Curve drawn = curve.curve("loss");
  test::require(drawn.x.size() == drawn.y.size() && drawn.x.size() <= number,
                "more points than lines");
  for (const double y : drawn.y) test::require(std::isfinite(y), "a point without a place");
}

void sweep(std::string_view text) {
  const lm_train::SweepList list = lm_train::parse_list(with_digest_line(text), "fuzz");
  const std::string again = lm_train::list_text(list);
  test::require(lm_train::list_text(lm_train::parse_list(with_digest_line(again), "fuzz")) == again,
                "another list from what was written");
  for (const lm_train::SweepCell& cell : list.cells)
    test::require(cell.values.size() == list.keys.size(), "a value too many or too few");
}

constexpr std::array<test::Kind, 3> kKinds = {{{'r', result}, {'m', metrics}, {'s', sweep}}};

void check(std::string_view input) { test::use_by_kind(input, kKinds); }

}  // namespace

MASQUE_FUZZ_TARGET(check)
MASQUE_FUZZ_MUTATOR(masque::test::mutate_after<masque::test::mutate_json_or_lines>)
