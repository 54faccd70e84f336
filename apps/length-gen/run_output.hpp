// What a run of lengths leaves: tables and a chart.
#pragma once

#include <string>
#include <vector>

#include "cli/run_tool.hpp"
#include "train/length_arms.hpp"
#include "train/length_run.hpp"

namespace masque::length_gen {

struct RunResult {
  std::string title;                 ///< what was learnt
  std::string trained;               ///< train lengths, as given
  std::vector<std::string> designs;  ///< of arms
  bool whole = false;                ///< sequences are right as a whole, too
  train::LengthResult found;
};

/// Fields of a line of TSV, with its end.
std::string line_of(const std::vector<std::string>& fields);
/// A number of a result: with four decimals, in JSON with all; null where there is none.
cli::Cell rounded_cell(double value);

/// Writes results.tsv, summary.tsv and curves.svg. Throws InputError.
void write_files(const RunResult& result, const std::string& folder);
/// The summary on stdout.
void print_summary(const RunResult& result, const cli::CommonOptions& common,
                   cli::Session& session);

}  // namespace masque::length_gen
