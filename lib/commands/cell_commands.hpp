// The cells of a sweep as command lines that depend on nothing but their line: a list for
// GNU parallel, or the script of a Slurm array.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"
#include "cli/session.hpp"

namespace masque::commands {

/// Returns `words` as a shell reads them, with blanks between, in one line. Throws UsageError for a
/// word with hidden characters (base/escape.hpp), such as the end of a line.
std::string shell_line(std::span<const std::string> words);

/// How the cells of a sweep are printed.
struct CellOptions {
  bool print_slurm = false;                     ///< as the script of an array
  std::optional<std::string> slurm_time;        ///< as sbatch takes it, of one cell
  std::optional<std::string> slurm_memory;      ///< as sbatch takes it, of one cell
  std::optional<std::int64_t> slurm_cpus = {};  ///< processors of one cell
};

/// Keys of the options of declare_cells.
std::span<const std::string_view> cell_keys();

/// Declares the options of `options` in `command`, a sweep.
void declare_cells(cli::Command& command, CellOptions& options);

/// Throws UsageError for resources without a script, and for text in `options` that sbatch does not
/// take.
void check_cells(const CellOptions& options);

/// Throws UsageError that names the first option or argument of `command`, a sweep, with hidden
/// characters in its value: its lines would be no lines.
void check_values(const cli::Command& command);

/// Returns the words that give a cell of the sweep `command` its threads: as many as the processors
/// of `options`, unless threads are given.
std::vector<std::string> thread_words(const cli::Command& command, const CellOptions& options);

/// Prints `lines`, the commands of a sweep of `tool`, to `session`: one a line, or as a script with
/// the resources of `options` that runs line $SLURM_ARRAY_TASK_ID. Before the time of a cell is
/// over the script lets the command save and queues the cell again. Throws Interrupted.
void print_cells(std::string_view tool, const std::vector<std::string>& lines,
                 const CellOptions& options, cli::Session& session);

}  // namespace masque::commands
