#include "run_output.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/escape.hpp"
#include "base/file.hpp"
#include "draw/chart.hpp"
#include "draw/svg.hpp"
#include "train/length_store.hpp"

namespace masque::length_gen {

namespace {

using train::LengthRow;
using train::LengthSummary;

/// "64", or "none".
std::string window_text(Index window) {
  return window > 0 ? fmt::format("{}", window) : std::string("none");
}

std::string results_text(const RunResult& result) {
  std::string text;
  const auto& rows = result.found.rows;
  const std::size_t each = rows.size() / result.found.settings.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const train::LengthSubject::Settings& settings = result.found.settings[i / each];
    const LengthRow& row = rows[i];
    if (text.empty()) {
      std::vector<std::string> names{"design",  "train_length", "window",  "eval_length",
                                     "targets", "loss",         "accuracy"};
      if (result.whole) names.emplace_back("whole");
      for (const auto& [name, value] : settings) names.push_back(name);
      text += line_of(names);
    }
    std::vector<std::string> fields{escape(result.designs[row.arm]), result.trained,
                                    window_text(row.window),         fmt::format("{}", row.length),
                                    fmt::format("{}", row.targets),  fmt::format("{}", row.loss),
                                    fmt::format("{}", row.accuracy)};
    if (result.whole) fields.push_back(fmt::format("{}", row.whole));
    for (const auto& [name, value] : settings) fields.push_back(escape(value));
    text += line_of(fields);
  }
  return text;
}

/// What is summed up over seeds, by name.
std::vector<std::pair<const char*, probe::Summary LengthSummary::*>> measures(bool whole) {
  std::vector<std::pair<const char*, probe::Summary LengthSummary::*>> all{
      {"accuracy", &LengthSummary::accuracy}, {"loss", &LengthSummary::loss}};
  if (whole) all.emplace_back("whole", &LengthSummary::whole);
  return all;
}

std::string summary_text(const RunResult& result, const std::vector<LengthSummary>& summary) {
  std::string text = line_of({"design", "train_length", "window", "eval_length", "targets",
                              "measure", "seeds", "mean", "sd", "min", "max", "low", "high"});
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const LengthSummary& cell : summary) {
    for (const auto& [name, field] : measures(result.whole)) {
      const probe::Summary& s = cell.*field;
      text +=
          fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                      escape(result.designs[cell.arm]), result.trained, window_text(cell.window),
                      cell.length, cell.targets, name, s.n, s.mean, s.sd, s.min, s.max,
                      s.interval ? s.interval->low : kNone, s.interval ? s.interval->high : kNone);
    }
  }
  return text;
}

std::string picture(const RunResult& result, const std::vector<LengthSummary>& summary) {
  draw::Chart chart;
  chart.title = fmt::format("{}, trained at {}", result.title, result.trained);
  chart.x = {"length", true};
  chart.y.name = "accuracy";
  std::size_t arm = 0;
  Index window = 0;
  for (const LengthSummary& cell : summary) {
    if (chart.curves.empty() || cell.arm != arm || cell.window != window) {
      arm = cell.arm;
      window = cell.window;
      std::string name = result.designs[arm];
      if (window > 0) name += fmt::format(", window {}", window);
      chart.curves.push_back({std::move(name), {}, {}});
    }
    chart.curves.back().x.push_back(static_cast<double>(cell.length));
    chart.curves.back().y.push_back(cell.accuracy.mean);
  }
  chart.note =
      fmt::format("mean of {} seeds, {} steps", summary.front().accuracy.n, result.found.steps);
  return draw::svg(chart);
}

}  // namespace

std::string line_of(const std::vector<std::string>& fields) {
  return fmt::format("{}\n", fmt::join(fields, "\t"));
}

cli::Cell rounded_cell(double value) {
  return cli::Cell::raw(fmt::format("{:.4f}", value),
                        std::isfinite(value) ? fmt::format("{}", value) : std::string("null"));
}

void write_files(const RunResult& result, const std::string& folder) {
  const std::vector<LengthSummary> summary = train::summarise_lengths(result.found.rows);
  train::replace_text(join(folder, "results.tsv"), results_text(result));
  train::replace_text(join(folder, "summary.tsv"), summary_text(result, summary));
  train::replace_text(join(folder, "curves.svg"), picture(result, summary));
}

void print_summary(const RunResult& result, const cli::CommonOptions& common,
                   cli::Session& session) {
  std::vector<std::string> columns{"design", "train_length", "window", "eval_length", "targets",
                                   "seeds",  "accuracy",     "sd",     "min",         "max",
                                   "low",    "high",         "loss",   "loss_sd"};
  if (result.whole) columns.emplace_back("whole");
  cli::Table table(session, common, columns);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  for (const LengthSummary& cell : train::summarise_lengths(result.found.rows)) {
    const probe::Summary& s = cell.accuracy;
    std::vector<cli::Cell> cells{result.designs[cell.arm],
                                 result.trained,
                                 window_text(cell.window),
                                 cell.length,
                                 cell.targets,
                                 s.n,
                                 rounded_cell(s.mean),
                                 rounded_cell(s.sd),
                                 rounded_cell(s.min),
                                 rounded_cell(s.max),
                                 rounded_cell(s.interval ? s.interval->low : kNone),
                                 rounded_cell(s.interval ? s.interval->high : kNone),
                                 rounded_cell(cell.loss.mean),
                                 rounded_cell(cell.loss.sd)};
    if (result.whole) cells.push_back(rounded_cell(cell.whole.mean));
    table.row(cells);
  }
  table.finish();
}

}  // namespace masque::length_gen
