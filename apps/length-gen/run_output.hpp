// What a run of lengths leaves: tables and a chart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/run_tool.hpp"
#include "length/table.hpp"

namespace masque::length_gen {

/// Fields of a line of TSV, with its end.
std::string line_of(const std::vector<std::string>& fields);

/// Throws InputError if `folder` has one of `files`, but no results.tsv that begins with `header`:
/// they are not results of this command.
void refuse_other_results(const std::string& folder, const std::vector<std::string>& files,
                          std::string_view header);
/// The files that write_tables makes.
std::vector<std::string> table_files();
/// The same as suffixes of a folder's path, as cli::Command::writes takes them.
std::vector<std::string> as_suffixes(const std::vector<std::string>& files);

/// Throws InputError if write_tables could not write to `folder`, because other files stand there.
void check_tables(const std::string& folder);

/// Writes results.tsv as it is, and summary.tsv and curves.svg made of it; makes the folder if
/// there is none. Says if rows of an earlier run are replaced. Throws InputError, also as
/// check_tables().
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
