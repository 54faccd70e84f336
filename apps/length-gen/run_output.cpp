#include "run_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "base/file/output_file.hpp"
#include "base/input/digest_line.hpp"
#include "draw/chart.hpp"
#include "draw/svg.hpp"
#include "length/store.hpp"

namespace masque::length_gen {

namespace {

using length::LengthSummary;
using length::LengthTable;

constexpr const char* kParts = "parts";

/// "64", or "none".
std::string or_none(Index number) {
  return number > 0 ? fmt::format("{}", number) : std::string("none");
}

/// What is summed up over seeds, by name.
std::vector<std::pair<const char*, evaluate::Summary LengthSummary::*>> measures(bool whole) {
  std::vector<std::pair<const char*, evaluate::Summary LengthSummary::*>> all{
      {"accuracy", &LengthSummary::accuracy}, {"loss", &LengthSummary::loss}};
  if (whole) all.emplace_back("whole", &LengthSummary::whole);
  return all;
}

/// What tells the rows of a summary apart.
std::vector<std::string> key_columns(const LengthTable& table) {
  std::vector<std::string> columns{"design", "train_length"};
  if (table.finetuned) columns.emplace_back("finetune_length");
  columns.insert(columns.end(), {"window", "eval_length", "targets"});
  return columns;
}

std::vector<std::string> key_of(const LengthTable& table, const LengthSummary& cell) {
  std::vector<std::string> fields{table.names.designs[cell.arm], table.names.trained};
  if (table.finetuned) fields.push_back(or_none(cell.finetuned ? cell.length : 0));
  fields.push_back(or_none(cell.window));
  fields.push_back(fmt::format("{}", cell.length));
  fields.push_back(fmt::format("{}", cell.targets));
  return fields;
}

std::string summary_text(const LengthTable& table, const std::vector<LengthSummary>& summary) {
  std::vector<std::string> header = key_columns(table);
  header.insert(header.end(),
                {"measure", "seeds", "mean", "sd", "min", "max", "low", "high", "chance"});
  std::string text = line_of(header);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto end = [](const evaluate::Summary& s, double evaluate::Interval::*which) {
    return s.interval ? fmt::format("{}", (*s.interval).*which) : std::string("-");
  };
  for (const LengthSummary& cell : summary) {
    for (const auto& [name, field] : measures(table.names.whole)) {
      const evaluate::Summary& s = cell.*field;
      const bool is_accuracy = field == &LengthSummary::accuracy;
      text +=
          fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n",
                      fmt::join(key_of(table, cell), "\t"), name, s.n, s.mean, s.sd, s.min, s.max,
                      end(s, &evaluate::Interval::low), end(s, &evaluate::Interval::high),
                      is_accuracy ? table.names.chance.at(cell.length) : kNone);
    }
  }
  return text;
}

std::string curve_name(const LengthTable& table, const LengthSummary& cell) {
  std::string name = table.names.designs[cell.arm];
  if (cell.finetuned) name += ", fine-tuned";
  if (cell.window > 0) name += fmt::format(", window {}", cell.window);
  return name;
}

/// Which designs are no better than chance at which lengths; empty: none.
std::string chance_text(const LengthTable& table, const std::vector<LengthSummary>& summary) {
  constexpr std::size_t kMostNamed = 4;
  std::vector<std::string> cells;
  for (const LengthSummary& cell : summary) {
    if (length::above_chance(cell, table.names.chance.at(cell.length))) continue;
    cells.push_back(fmt::format("{} at length {}", curve_name(table, cell), cell.length));
  }
  if (cells.empty()) return "";
  if (cells.size() == summary.size()) return "no accuracy is above chance";
  const std::size_t more = cells.size() > kMostNamed ? cells.size() - kMostNamed : 0;
  cells.resize(cells.size() - more);
  return fmt::format("not above chance: {}{}", fmt::join(cells, "; "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

/// A curve for each design, window and whether it was fine-tuned: means over seeds, with a band
/// from the least to the largest of several.
draw::Chart chart_of(const LengthTable& table, const std::vector<LengthSummary>& summary,
                     const char* name, evaluate::Summary LengthSummary::*measure) {
  draw::Chart chart;
  chart.title = fmt::format("{}, trained at {}", table.title, table.names.trained);
  chart.x = {"length", true};
  chart.y.name = name;
  for (const auto& [length, share] : table.names.chance)
    chart.x.ticks.push_back(static_cast<double>(length));
  const auto same = [](const LengthSummary& a, const LengthSummary& b) {
    return a.arm == b.arm && a.window == b.window && a.finetuned == b.finetuned;
  };
  const LengthSummary* last = nullptr;
  for (const LengthSummary& cell : summary) {
    if (last == nullptr || !same(*last, cell)) {
      chart.curves.push_back({curve_name(table, cell), {}, {}});
    }
    last = &cell;
    const evaluate::Summary& values = cell.*measure;
    draw::Curve& curve = chart.curves.back();
    curve.x.push_back(static_cast<double>(cell.length));
    curve.y.push_back(values.mean);
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    curve.low.push_back(values.n > 1 ? values.min : kNone);
    curve.high.push_back(values.n > 1 ? values.max : kNone);
  }
  const Index seeds = summary.front().accuracy.n;
  chart.note = seeds > 1 ? fmt::format(
                               "mean of {} seeds, band from the lowest to the highest; {} "
                               "steps",
                               seeds, table.steps)
                         : fmt::format("one seed, {} steps", table.steps);
  return chart;
}

/// Beside what is reached by chance, and on a scale that begins at 0: noise stays small there.
std::string accuracy_picture(const LengthTable& table, const std::vector<LengthSummary>& summary) {
  draw::Chart chart = chart_of(table, summary, "accuracy", &LengthSummary::accuracy);
  draw::Curve& chance = chart.curves.emplace_back();
  chance.name = "chance";
  double most = 0;
  for (const auto& [length, share] : table.names.chance) {
    chance.x.push_back(static_cast<double>(length));
    chance.y.push_back(share);
    most = std::max(most, share);
  }
  chart.y.from = 0;
  chart.y.to = std::min(1.0, 2 * most);
  if (const std::string verdict = chance_text(table, summary); !verdict.empty())
    chart.note += "; " + verdict;
  return draw::svg(chart);
}

std::string loss_picture(const LengthTable& table, const std::vector<LengthSummary>& summary) {
  return draw::svg(chart_of(table, summary, "loss", &LengthSummary::loss));
}

}  // namespace

std::string line_of(const std::vector<std::string>& fields) {
  return fmt::format("{}\n", fmt::join(fields, "\t"));
}

void refuse_other_results(const std::string& folder, const std::vector<std::string>& files,
                          std::string_view header) {
  const std::string results = join(folder, "results.tsv");
  if (exists(results) && read_text(results, length::kMostTableBytes).starts_with(header)) return;
  for (const std::string& file : files) {
    if (exists(join(folder, file)))
      throw InputError(join(folder, file),
                       "not a result of this command: move it away, or choose another folder");
  }
}

std::vector<std::string> table_files() {
  return {"results.tsv", "summary.tsv", "curves.svg", "loss.svg"};
}

std::vector<std::string> as_suffixes(const std::vector<std::string>& files) {
  std::vector<std::string> suffixes;
  suffixes.reserve(files.size());
  for (const std::string& file : files) suffixes.push_back("/" + file);
  return suffixes;
}

void check_tables(const std::string& folder) {
  // Of a run that was killed while it wrote them, results.tsv may be missing.
  if (exists(join(folder, "results.tsv")) || !exists(join(folder, "cells")))
    refuse_other_results(folder, table_files(), "design\ttrain_length\t");
}

void write_tables(const std::string& results, const std::string& folder, cli::Session& session) {
  const std::string path = join(folder, "results.tsv");
  const LengthTable table = length::read_results(path, results);
  const std::vector<LengthSummary> summary = length::summarise_lengths(table.rows);
  check_tables(folder);
  const std::string cells = join(folder, "cells");
  make_folder(folder);
  if (exists(path)) {
    if (const auto lost = length::lost_rows(read_text(path, length::kMostTableBytes), results)) {
      session.note(fmt::format("{}: replaces {}{}", path, *lost,
                               exists(cells) ? "; its results stay in " + cells : ""));
    }
  }
  replace_text(path, results);
  replace_text(join(folder, "summary.tsv"), summary_text(table, summary));
  replace_text(join(folder, "curves.svg"), accuracy_picture(table, summary));
  replace_text(join(folder, "loss.svg"), loss_picture(table, summary));
}

void write_part(const std::string& results, const std::string& folder, std::size_t cell,
                std::size_t cells) {
  const std::string parts = join(folder, kParts);
  make_folder(parts);
  replace_text(join(parts, length::part_name(cell, cells)), with_digest_line(results));
}

std::string collect_results(const std::vector<std::string>& folders) {
  std::vector<std::string> parts;
  parts.reserve(folders.size());
  for (const std::string& folder : folders) {
    if (!is_folder(folder))
      throw InputError(folder, "not a folder, expected one that length-gen run --cell wrote to");
    parts.push_back(join(folder, kParts));
  }
  return length::collect_parts(parts);
}

void print_summary(const LengthTable& table, const cli::CommonOptions& common,
                   cli::Session& session) {
  std::vector<std::string> columns = key_columns(table);
  columns.insert(columns.end(),
                 {"seeds", "accuracy", "sd", "min", "max", "low", "high", "loss", "loss_sd"});
  if (table.names.whole) columns.emplace_back("whole");
  columns.emplace_back("chance");
  cli::Table out(session, common, columns);
  const auto end = [](const evaluate::Summary& s, double evaluate::Interval::*which) {
    return s.interval ? cli::Cell::rounded((*s.interval).*which) : cli::Cell::none();
  };
  const std::vector<LengthSummary> summary = length::summarise_lengths(table.rows);
  if (!summary.empty() && summary.front().accuracy.n > 1) {
    session.note(
        fmt::format("low, high: Student's {:.0f} % interval of the mean accuracy over {} seeds",
                    100 * evaluate::kIntervalLevel, summary.front().accuracy.n));
  }
  for (const LengthSummary& cell : summary) {
    const evaluate::Summary& s = cell.accuracy;
    std::vector<cli::Cell> cells{table.names.designs[cell.arm], table.names.trained};
    if (table.finetuned) cells.emplace_back(or_none(cell.finetuned ? cell.length : 0));
    for (const cli::Cell& one :
         {cli::Cell(or_none(cell.window)), cli::Cell(cell.length), cli::Cell(cell.targets),
          cli::Cell(s.n), cli::Cell::rounded(s.mean), cli::Cell::rounded(s.sd),
          cli::Cell::rounded(s.min), cli::Cell::rounded(s.max), end(s, &evaluate::Interval::low),
          end(s, &evaluate::Interval::high), cli::Cell::rounded(cell.loss.mean),
          cli::Cell::rounded(cell.loss.sd)})
      cells.push_back(one);
    if (table.names.whole) cells.push_back(cli::Cell::rounded(cell.whole.mean));
    cells.push_back(cli::Cell::rounded(table.names.chance.at(cell.length)));
    const bool learned = length::above_chance(cell, table.names.chance.at(cell.length));
    out.row(cells, learned ? cli::Tone::kPlain : cli::Tone::kDim);
  }
  out.finish();
  if (const std::string verdict = chance_text(table, summary); !verdict.empty())
    session.note(verdict);
}

}  // namespace masque::length_gen
