// lm-train collect: a table of the runs of a sweep.
#include <cmath>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "cli/table.hpp"
#include "metrics.hpp"
#include "probe/statistics/bootstrap.hpp"
#include "sweep.hpp"
#include "sweep_list.hpp"
#include "train/run/folder_parts.hpp"
#include "train/run/run.hpp"

namespace masque::lm_train {

namespace {

constexpr std::size_t kMostNamed = 8;  // runs in a message
constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

struct CollectOptions {
  std::string folder;
  bool means = false;
  cli::CommonOptions common;
};

/// What is there of a run.
struct RunState {
  bool there = false;
  bool evaluated = false;  ///< after the last step
  std::int64_t steps = 0;  ///< of the whole run
  std::int64_t step = 0;   ///< those that are done
  double loss = kNothing, eval_loss = kNothing, eval_accuracy = kNothing;

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
      state.eval_accuracy = line.eval_accuracy;
      state.evaluated = line.step == state.steps;
    }
  });
  return state;
}

std::vector<std::string> measures_of(bool evaluated) {
  return evaluated ? std::vector<std::string>{"loss", "eval_loss", "eval_accuracy"}
                   : std::vector<std::string>{"loss"};
}

void print_runs(const SweepList& list, const std::vector<RunState>& states, bool evaluated,
                cli::Table& table) {
  for (std::size_t i = 0; i < states.size(); ++i) {
    const RunState& state = states[i];
    std::vector<cli::Cell> cells(list.cells[i].values.begin(), list.cells[i].values.end());
    cells.emplace_back(list.cells[i].seed);
    cells.emplace_back(state.step);
    cells.push_back(cli::Cell::rounded(state.loss));
    if (evaluated) {
      cells.push_back(cli::Cell::rounded(state.eval_loss));
      cells.push_back(cli::Cell::rounded(state.eval_accuracy));
    }
    table.row(cells, state.has_ended() ? cli::Tone::kPlain : cli::Tone::kDim);
  }
}

/// A row for each combination, of its seeds, which follow each other.
void print_means(const SweepList& list, const std::vector<RunState>& states, bool evaluated,
                 cli::Table& table) {
  for (std::size_t i = 0; i < states.size();) {
    const std::vector<std::string>& values = list.cells[i].values;
    std::vector<double> losses, eval_losses, accuracies;
    for (; i < states.size() && list.cells[i].values == values; ++i) {
      if (!states[i].has_ended()) continue;
      losses.push_back(states[i].loss);
      eval_losses.push_back(states[i].eval_loss);
      accuracies.push_back(states[i].eval_accuracy);
    }
    std::vector<cli::Cell> cells(values.begin(), values.end());
    cells.emplace_back(static_cast<std::int64_t>(losses.size()));
    const auto add = [&](const std::vector<double>& numbers) {
      const probe::Summary summary =
          numbers.empty() ? probe::Summary{0, kNothing, kNothing, kNothing, kNothing, {}}
                          : probe::summarise(numbers, {.replicates = 1});
      cells.push_back(cli::Cell::rounded(summary.mean));
      cells.push_back(cli::Cell::rounded(summary.sd));
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

cli::ExitCode collect(const CollectOptions& o, cli::Session& session) {
  session.configure(o.common);
  const SweepList list = read_list(o.folder);
  std::vector<RunState> states;
  bool evaluated = false;
  for (const SweepCell& cell : list.cells) {
    states.push_back(state_of(join(o.folder, cell.name)));
    evaluated = evaluated || !std::isnan(states.back().eval_loss) || states.back().evaluated;
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
  check_complete(o.folder, list, states, evaluated);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_collect(cli::Command& tool) {
  auto o = std::make_shared<CollectOptions>();
  cli::Command& c = tool.subcommand(
      "collect", "prints a table of the runs of a sweep, and which of them are missing");
  c.example("lm-train collect DIR", "a row for each run: what varies, its seed, and its losses");
  c.example("lm-train collect DIR --means", "the mean and standard deviation over the seeds");
  c.argument("DIR", o->folder, "folder of lm-train sweep");
  c.flag("--means", o->means,
         "print a row for each combination of options: mean and standard deviation of the finished "
         "seeds");
  cli::add_table(c, o->common);
  c.action([o](cli::Session& session) { return collect(*o, session); });
}

}  // namespace masque::lm_train
