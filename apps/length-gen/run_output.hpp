// What a run of lengths leaves: tables and a chart.
#pragma once

#include <string>
#include <vector>

#include "cli/run_tool.hpp"
#include "length/table.hpp"

namespace masque::length_gen {

/// Fields of a line of TSV, with its end.
std::string line_of(const std::vector<std::string>& fields);

/// Writes results.tsv as it is, and summary.tsv and curves.svg made of it; makes the folder if
/// there is none. Says if rows of an earlier run are replaced. Throws InputError.
void write_tables(const std::string& results, const std::string& folder, cli::Session& session);
/// Writes the results of one cell, for collect_results.
void write_part(const std::string& results, const std::string& folder, std::size_t cell,
                std::size_t cells);
/// One results.tsv from those of all cells in these folders. Throws InputError.
std::string collect_results(const std::vector<std::string>& folders);
/// The summary on stdout.
void print_summary(const length::LengthTable& table, const cli::CommonOptions& common,
                   cli::Session& session);

}  // namespace masque::length_gen
