#include "commands/cell_commands.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/thread/interrupt.hpp"
#include "cli/completion.hpp"

namespace masque::commands {

namespace {

constexpr std::array<std::string_view, 4> kCellKeys = {"print-slurm", "slurm-time", "slurm-memory",
                                                       "slurm-cpus"};
// A list has one command on each line, and those who read it divide it at the ends of lines only.
constexpr std::string_view kPlainText = "expected text without control characters";
constexpr std::string_view kDigitsOfNumber = "0123456789";

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=./,:+@%";
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
  return plain ? word : cli::shell_quoted(word);
}

/// The rest of sbatch's rules is sbatch's: here nothing may end the line of a comment.
void check_word(std::string_view name, const std::optional<std::string>& word,
                std::string_view letters, std::string_view expected) {
  if (!word) return;
  const bool starts = !word->empty() && kDigitsOfNumber.find(word->front()) != std::string::npos;
  const auto known = [&](char c) {
    return kDigitsOfNumber.find(c) != std::string_view::npos || letters.find(c) != letters.npos;
  };
  if (starts && std::ranges::all_of(*word, known)) return;
  throw UsageError(
      fmt::format("{}: found '{}', expected {}", field(name), escape(*word), expected));
}

// Slurm sends SIGUSR1 to the shell of the script alone, as --signal says; SIGTERM (scancel,
// preemption, requeue) it sends to every process of the task, and a second one would end the
// command before it has saved. "wait" returns early where a trap runs.
constexpr std::string_view kRun = R"(late='' program='' again=1
trap 'late=1 again=1; [ -z "$program" ] || kill -TERM "$program"' USR1
trap 'again=1' TERM
"$@" &
program=$!
while [ -n "$again" ]; do
  again=
  wait "$program"
  code=$?
done
if [ -n "$late" ] && [ "$code" -eq 143 ]; then
  echo "the time is nearly over: cell $SLURM_ARRAY_TASK_ID is queued again" >&2
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
)";

std::string script_of(std::string_view tool, const std::vector<std::string>& lines,
                      const CellOptions& options) {
  std::string text = fmt::format(
      "#!/bin/bash\n"
      "# {} of a sweep of {}, one for each task of an array. Submit this file with sbatch, in the\n"
      "# folder in which the commands shall run.\n"
      "#SBATCH --job-name={}\n#SBATCH --array=1-{}\n#SBATCH --ntasks=1\n",
      lines.size() == 1 ? "1 cell" : fmt::format("{} cells", lines.size()), tool, tool,
      lines.size());
  const auto add = [&](std::string_view name, const auto& value) {
    if (value) text += fmt::format("#SBATCH --{}={}\n", name, *value);
  };
  add("cpus-per-task", options.slurm_cpus);
  add("mem", options.slurm_memory);
  add("time", options.slurm_time);
  text +=
      "#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --signal=B:USR1@60\n"
      "case ${SLURM_ARRAY_TASK_ID:?submit this file with sbatch} in\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    throw_if_interrupted();
    text += fmt::format("{}) set -- {} ;;\n", i + 1, lines[i]);
  }
  text += "*) echo \"no cell $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\nesac\n";
  text += kRun;
  return text;
}

}  // namespace

std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) {
    if (has_hidden_characters(word))
      throw UsageError(fmt::format("found '{}', {}", escape(word), kPlainText));
    line += (line.empty() ? "" : " ") + shell_word(word);
  }
  return line;
}

void check_values(const cli::Command& command) {
  const std::vector<cli::Entry> entries = command.entries();
  for (const cli::Setting& setting : command.settings()) {
    if (!has_hidden_characters(setting.value)) continue;
    const auto entry =
        std::ranges::find(entries, setting.key, [](const cli::Entry& e) { return cli::key_of(e); });
    std::string name = setting.key;
    std::ranges::replace(name, '-', '_');
    throw UsageError(
        fmt::format("{}: found '{}', {}",
                    entry != entries.end() && entry->positional ? entry->names : field(name),
                    escape(setting.value), kPlainText));
  }
}

std::span<const std::string_view> cell_keys() { return kCellKeys; }

void declare_cells(cli::Command& command, CellOptions& options) {
  command.flag("--print-slurm", options.print_slurm,
               "print a script for sbatch instead of a list: an array with a task for each cell, "
               "which continues after a requeue and when its time is over");
  command.option("--slurm-time", "TIME", options.slurm_time,
                 "time limit of a cell in the script, such as 4:00:00");
  command.option("--slurm-memory", "SIZE", options.slurm_memory,
                 "memory of a cell in the script, such as 8G");
  command.option("--slurm-cpus", "N", options.slurm_cpus, cli::AllowedRange{1, 1024},
                 "processors of a cell in the script, and its threads");
}

void check_cells(const CellOptions& o) {
  if (!o.print_slurm) {
    for (const auto& [given, name] : {std::pair(o.slurm_time.has_value(), "slurm_time"),
                                      std::pair(o.slurm_memory.has_value(), "slurm_memory"),
                                      std::pair(o.slurm_cpus.has_value(), "slurm_cpus")}) {
      if (given) throw UsageError(fmt::format("{} needs {}", field(name), field("print_slurm")));
    }
  }
  check_word("slurm_time", o.slurm_time, ":-", "a time such as 90, 4:00:00 or 2-12");
  check_word("slurm_memory", o.slurm_memory, "KMGT", "a size such as 8G");
}

std::vector<std::string> thread_words(const cli::Command& command, const CellOptions& options) {
  if (!options.slurm_cpus || command.is_set("threads")) return {};
  return {"-j", fmt::format("{}", *options.slurm_cpus)};
}

void print_cells(std::string_view tool, const std::vector<std::string>& lines,
                 const CellOptions& options, cli::Session& session) {
  if (options.print_slurm) {
    session.print(script_of(tool, lines, options));
    return;
  }
  for (const std::string& line : lines) {
    throw_if_interrupted();
    session.print(line + "\n");
  }
}

}  // namespace masque::commands
