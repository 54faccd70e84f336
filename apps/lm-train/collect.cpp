// lm-train collect: a table of the runs of a sweep.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "base/string/parse_number.hpp"
#include "cli/table.hpp"
#include "draw/chart.hpp"
#include "draw/figure_file.hpp"
#include "evaluate/statistics/summary.hpp"
#include "metrics.hpp"
#include "sweep.hpp"
#include "sweep_list.hpp"
#include "train/run/folder_parts.hpp"
#include "train/run/run.hpp"

namespace masque::lm_train {

namespace {

// Loss curves of several runs in one picture.

/// As many curves as look different.
constexpr std::size_t kMostCurves = 12;

/// Runs that are one curve: those of the seeds of a combination of options.
struct RunGroup {
  std::string name;                  ///< in the legend
  std::vector<std::string> folders;  ///< of the runs that exist
};

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

/// Throws InputError that names a run because of which no group has a curve.
[[noreturn]] void refuse_empty(const std::vector<RunGroup>& groups,
                               const std::vector<std::vector<RunCurves>>& all, bool evaluated) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < all[g].size(); ++i) {
      const RunCurves& run = all[g][i];
      const std::string& folder = groups[g].folders[i];
      if (evaluated && run.held_out.x.empty())
        throw InputError(folder, "no loss of held-out text to draw, which another run has");
      if (!evaluated && run.training.x.empty())
        throw InputError(folder, "no losses to draw, expected runs that have trained");
    }
  }
  const RunGroup& first = groups.front();
  throw InputError(first.folders.empty() ? first.name : first.folders.front(),
                   first.folders.empty() ? "no losses to draw, expected runs that have trained"
                                         : "no step with a loss that all runs of its group have");
}

/// The losses of `groups` over the steps, read from metrics.jsonl of each folder: of the held-out
/// text if a run has any, else of the training batches. A group of several runs has the mean over
/// its runs at each step that all of them have, and a band from the lowest to the highest of them;
/// a group without such a step has no curve, and `notes` gets a line about it. Throws UsageError
/// for more than kMostCurves groups; InputError as for_each_metrics_line, and if no run has a loss.
draw::Chart runs_chart(const std::vector<RunGroup>& groups, std::vector<std::string>& notes) {
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
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<draw::Curve> runs;
    for (const RunCurves& run : all[g]) runs.push_back(evaluated ? run.held_out : run.training);
    draw::Curve curve = mean_curve(groups[g].name, runs);
    if (curve.x.empty()) {
      notes.push_back(fmt::format("{}: not drawn, expected a {} at a step that all its runs have",
                                  escape(groups[g].name), chart.title));
    } else {
      chart.curves.push_back(std::move(curve));
    }
  }
  if (chart.curves.empty()) refuse_empty(groups, all, evaluated);
  if (most_seeds > 1) chart.note = "mean over seeds, band from the lowest to the highest";
  return chart;
}

// The command.

constexpr std::size_t kMostNamed = 8;  // runs in a message

struct CollectOptions {
  std::vector<std::string> folders;
  std::optional<std::string> output;
  bool means = false;
  cli::CommonOptions common;
};

/// What is there of a run.
struct RunState {
  bool there = false;
  bool evaluated = false;  ///< after the last step
  std::int64_t steps = 0;  ///< of the whole run
  std::int64_t step = 0;   ///< those that are done
  /// The last ones; nothing: there is none. Of a run that has diverged they are no numbers.
  std::optional<double> loss, eval_loss, eval_accuracy;

  bool has_ended() const { return there && step == steps; }
};

RunState state_of(const std::string& folder) {
  RunState state;
  if (!train::TrainingRun::has_state(folder)) return state;
  state.there = true;
  const auto steps = train::TrainingRun::saved_setting(folder, "steps");
  if (!steps)
    throw InputError(folder, "no setting 'steps', expected the folder of a run of lm-train");
  state.steps = train::StepPlan::parse(*steps).steps();
  train::TrainingRun::check_metrics(folder);
  for_each_metrics_line(join(folder, train::kMetricsName), [&](const MetricsLine& line) {
    if (line.loss) {
      state.step = line.step;
      state.loss = *line.loss;
    }
    if (line.evaluation) {
      state.eval_loss = line.eval_loss;
      // Without targets there is none.
      state.eval_accuracy =
          std::isnan(line.eval_accuracy) ? std::nullopt : std::optional(line.eval_accuracy);
      state.evaluated = line.step == state.steps;
    }
  });
  return state;
}

std::vector<std::string> measures_of(bool evaluated) {
  return evaluated ? std::vector<std::string>{"loss", "eval_loss", "eval_accuracy"}
                   : std::vector<std::string>{"loss"};
}

cli::Cell rounded_or_none(const std::optional<double>& value) {
  return value ? cli::Cell::rounded(*value) : cli::Cell::none();
}

void print_runs(const SweepList& list, const std::vector<RunState>& states, bool evaluated,
                cli::Table& table) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    const RunState& state = states[i];
    std::vector<cli::Cell> cells(list.cells[i].values.begin(), list.cells[i].values.end());
    cells.emplace_back(list.cells[i].seed);
    cells.emplace_back(state.step);
    cells.push_back(rounded_or_none(state.loss));
    if (evaluated) {
      cells.push_back(rounded_or_none(state.eval_loss));
      cells.push_back(rounded_or_none(state.eval_accuracy));
    }
    table.row(cells, state.has_ended() ? cli::Tone::kPlain : cli::Tone::kDim);
  }
}

/// The mean of `values` and, of several, their standard deviation; nothing where one is missing.
std::pair<std::optional<double>, std::optional<double>> mean_and_deviation(
    const std::vector<std::optional<double>>& values) {
  std::vector<double> numbers;
  for (const std::optional<double>& value : values) {
    if (!value) return {};
    numbers.push_back(*value);
  }
  if (numbers.empty()) return {};
  const evaluate::Summary summary = evaluate::summarise(numbers);
  return {summary.mean, numbers.size() > 1 ? std::optional(summary.sd) : std::nullopt};
}

/// A row for each combination, of its seeds, which follow each other.
void print_means(const SweepList& list, const std::vector<RunState>& states, bool evaluated,
                 cli::Table& table) {
  for (std::size_t i = 0; i < states.size();) {
    const std::vector<std::string>& values = list.cells[i].values;
    std::vector<std::optional<double>> losses, eval_losses, accuracies;
    for (; i < states.size() && list.cells[i].values == values; ++i) {
      if (!states[i].has_ended()) continue;
      losses.push_back(states[i].loss);
      eval_losses.push_back(states[i].eval_loss);
      accuracies.push_back(states[i].eval_accuracy);
    }
    std::vector<cli::Cell> cells(values.begin(), values.end());
    cells.emplace_back(static_cast<std::int64_t>(losses.size()));
    const auto add = [&](const std::vector<std::optional<double>>& values_of_seeds) {
      const auto [mean, deviation] = mean_and_deviation(values_of_seeds);
      cells.push_back(rounded_or_none(mean));
      cells.push_back(rounded_or_none(deviation));
    };
    add(losses);
    if (evaluated) {
      add(eval_losses);
      add(accuracies);
    }
    table.row(cells);
  }
}

/// "2 of 12 runs are missing: a, b", or nothing.
std::string message_about(std::vector<std::string> names, std::size_t count,
                          std::string_view what) {
  if (names.empty()) return "";
  const std::size_t found = names.size();
  if (found > kMostNamed) {
    names.resize(kMostNamed);
    names.emplace_back("…");
  }
  return fmt::format("{} of {} runs {} {}: {}", found, count, found == 1 ? "is" : "are", what,
                     fmt::join(names, ", "));
}

/// Throws InputError unless all have ended.
void check_complete(const std::string& folder, const SweepList& list,
                    const std::vector<RunState>& states, bool evaluated) {
  std::vector<std::string> missing, unfinished;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!states[i].there) {
      missing.push_back(list.cells[i].name);
    } else if (!states[i].has_ended() || (evaluated && !states[i].evaluated)) {
      unfinished.push_back(list.cells[i].name);
    }
  }
  const std::string one = message_about(missing, states.size(), "missing");
  const std::string two = message_about(unfinished, states.size(), "unfinished");
  if (!one.empty() || !two.empty())
    throw InputError(folder, one + (one.empty() || two.empty() ? "" : "; ") + two);
}

/// Runs that no sweep listed, by their folders. Throws InputError for what is none.
SweepList list_of_runs(const std::vector<std::string>& folders) {
  SweepList list{{"run"}, {}};
  for (const std::string& folder : folders) {
    if (!train::TrainingRun::has_state(folder))
      throw InputError(folder, folders.size() == 1
                                   ? fmt::format("no {} and no run, expected a folder of lm-train "
                                                 "sweep, or folders of runs",
                                                 kSweepList)
                                   : "no run in it, expected folders of runs of lm-train");
    const auto seed = train::TrainingRun::saved_setting(folder, "seed");
    list.cells.push_back(
        {folder, {folder}, parse_number<std::uint64_t>(seed.value_or("")).value_or(0)});
  }
  return list;
}

/// The runs of each combination of options, which follow each other in `list`.
std::vector<RunGroup> groups_of(const SweepList& list, const std::vector<std::string>& folders,
                                const std::vector<RunState>& states) {
  std::vector<RunGroup> groups;
  for (std::size_t i = 0; i < list.cells.size(); ++i) {
    const std::vector<std::string>& values = list.cells[i].values;
    if (i == 0 || values != list.cells[i - 1].values)
      groups.push_back(
          {values.empty() ? "all seeds" : fmt::format("{}", fmt::join(values, ", ")), {}});
    if (states[i].there) groups.back().folders.push_back(folders[i]);
  }
  std::erase_if(groups, [](const RunGroup& group) { return group.folders.empty(); });
  return groups;
}

/// A run that diverged has losses that are no numbers: the table says nan, and this which one.
void note_non_numbers(const SweepList& list, const std::vector<RunState>& states,
                      cli::Session& session) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto no_number = [](const std::optional<double>& x) { return x && !std::isfinite(*x); };
    const bool no_loss = no_number(states[i].loss);
    const bool no_eval = states[i].evaluated && no_number(states[i].eval_loss);
    if (no_loss || no_eval) names.push_back(list.cells[i].name);
  }
  const std::string message =
      message_about(names, states.size(), "without a number as its last loss");
  if (!message.empty()) session.error(message);
}

cli::ExitCode collect(const CollectOptions& o, cli::Session& session) {
  session.configure(o.common);
  if (o.output && !draw::is_picture_name(*o.output)) {
    throw UsageError(fmt::format("-o: found '{}', expected a name that ends in .svg or .png",
                                 escape(*o.output)));
  }
  const bool sweep = o.folders.size() == 1 && exists(join(o.folders.front(), kSweepList));
  const SweepList list = sweep ? read_list(o.folders.front()) : list_of_runs(o.folders);
  std::vector<std::string> folders;
  std::vector<RunState> states;
  bool evaluated = false;
  for (const SweepCell& cell : list.cells) {
    folders.push_back(sweep ? join(o.folders.front(), cell.name) : cell.name);
    states.push_back(state_of(folders.back()));
    evaluated = evaluated || states.back().eval_loss;
  }
  if (o.output) {
    const std::vector<RunGroup> groups = groups_of(list, folders, states);
    if (groups.empty()) throw InputError(o.folders.front(), "no run has begun: nothing to draw");
    std::vector<std::string> notes;
    draw::Chart chart = runs_chart(groups, notes);
    for (const std::string& note : notes) session.note(note);
    if (!list.keys.empty()) chart.title += fmt::format(" by {}", fmt::join(list.keys, ", "));
    draw::write_picture(*o.output, chart);
  }
  std::vector<std::string> columns = list.keys;
  if (o.means) {
    columns.emplace_back("seeds");
    for (const std::string& name : measures_of(evaluated)) {
      columns.push_back(name);
      columns.push_back(name + "_sd");
    }
  } else {
    columns.insert(columns.end(), {"seed", "step"});
    for (const std::string& name : measures_of(evaluated)) columns.push_back(name);
  }
  cli::Table table(session, o.common, columns);
  if (o.means) {
    print_means(list, states, evaluated, table);
  } else {
    print_runs(list, states, evaluated, table);
  }
  table.finish();
  note_non_numbers(list, states, session);
  check_complete(o.folders.front(), list, states, sweep && evaluated);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_collect(cli::Command& tool) {
  auto o = std::make_shared<CollectOptions>();
  cli::Command& c = tool.subcommand(
      "collect", "prints a table of the runs of a sweep, and which of them are missing");
  c.example("lm-train collect DIR", "a row for each run: what varies, its seed, and its losses");
  c.example("lm-train collect DIR --means -o curves.svg",
            "the mean and standard deviation over the seeds, and a curve for each combination");
  c.example("lm-train collect small wide deep -o curves.png", "three runs, and their loss curves");
  c.arguments("DIR", o->folders, "folder of lm-train sweep, or folders of runs");
  c.flag("--means", o->means,
         "print a row for each combination of options: mean and standard deviation of the finished "
         "seeds");
  c.option("-o,--output", "FILE", o->output,
           "draw loss curves (.svg .png), of the held-out text if there is one: a curve for each "
           "combination of options, the mean over its seeds");
  c.writes({"output"});
  cli::add_table(c, o->common);
  c.action([o](cli::Session& session) { return collect(*o, session); });
}

}  // namespace masque::lm_train
