#include "runs_picture.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "loss_curve.hpp"
#include "metrics.hpp"
#include "train/run/folder_parts.hpp"

namespace masque::lm_train {

namespace {

/// Both losses of a run.
struct RunCurves {
  draw::Curve training, held_out;
};

RunCurves curves_of(const std::string& folder) {
  LossCurve training;
  LossCurve held_out;
  for_each_metrics_line(join(folder, train::kMetricsName), [&](const MetricsLine& line) {
    if (line.loss) training.add(line.step, *line.loss);
    if (line.evaluation) held_out.add(line.step, line.eval_loss);
  });
  return {training.curve(""), held_out.curve("")};
}

/// The mean of `runs`, at the steps that all have, with a band if there are several.
draw::Curve mean_curve(const std::string& name, const std::vector<draw::Curve>& runs) {
  std::map<double, std::vector<double>> losses;
  for (const draw::Curve& run : runs) {
    for (std::size_t i = 0; i < run.x.size(); ++i) losses[run.x[i]].push_back(run.y[i]);
  }
  draw::Curve curve{name, {}, {}};
  for (const auto& [step, values] : losses) {
    if (values.size() != runs.size()) continue;
    double sum = 0;
    for (const double value : values) sum += value;
    curve.x.push_back(step);
    curve.y.push_back(sum / static_cast<double>(values.size()));
    if (runs.size() == 1) continue;
    curve.low.push_back(*std::ranges::min_element(values));
    curve.high.push_back(*std::ranges::max_element(values));
  }
  return curve;
}

}  // namespace

draw::Chart runs_chart(const std::vector<RunGroup>& groups) {
  if (groups.size() > kMostCurves) {
    throw UsageError(fmt::format("{}: {} curves, expected at most {}: more would look alike",
                                 field("output"), groups.size(), kMostCurves));
  }
  std::vector<std::vector<RunCurves>> all;
  bool evaluated = false;
  std::size_t most_seeds = 0;
  for (const RunGroup& group : groups) {
    std::vector<RunCurves>& runs = all.emplace_back();
    for (const std::string& folder : group.folders) {
      runs.push_back(curves_of(folder));
      evaluated = evaluated || !runs.back().held_out.x.empty();
    }
    most_seeds = std::max(most_seeds, runs.size());
  }
  draw::Chart chart;
  chart.title = evaluated ? "loss of held-out text" : "loss of training batches";
  chart.x.name = "step";
  chart.y.name = "nats per token";
  bool some = false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<draw::Curve> runs;
    for (const RunCurves& run : all[g]) runs.push_back(evaluated ? run.held_out : run.training);
    chart.curves.push_back(mean_curve(groups[g].name, runs));
    some = some || !chart.curves.back().x.empty();
  }
  if (!some) {
    throw InputError(
        groups.front().folders.empty() ? groups.front().name : groups.front().folders.front(),
        "no losses to draw, expected runs that have trained");
  }
  if (most_seeds > 1) chart.note = "mean over seeds, band from the lowest to the highest";
  return chart;
}

}  // namespace masque::lm_train
