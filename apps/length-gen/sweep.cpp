// length-gen sweep: the cells of a run as commands that depend on nothing but their line.
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/completion.hpp"
#include "commands.hpp"
#include "run_options.hpp"

namespace masque::length_gen {

namespace {

/// A word as a shell reads it.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=./,:+@%";
  const bool plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
  return plain ? word : cli::shell_quoted(word);
}

cli::ExitCode sweep(const RunOptions& o, const std::vector<std::string>& given,
                    cli::Session& session) {
  if (o.budget) {
    throw UsageError(fmt::format(
        "{}: of commands for different machines every one would have other steps, expected {}",
        field("budget"), field("steps")));
  }
  const std::size_t cells = requested_of(o).cells();
  std::string words;
  for (const std::string& word : given) words += " " + shell_word(word);
  for (std::size_t cell = 1; cell <= cells; ++cell)
    session.print(fmt::format("length-gen run --cell {}/{}{}\n", cell, cells, words));
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_sweep(cli::Command& tool) {
  auto o = std::make_shared<RunOptions>();
  cli::Command& c = tool.subcommand("sweep", "the cells of a run as commands, a line each");
  c.example("length-gen sweep lengths.conf -o DIR -j 1 | parallel && length-gen collect DIR",
            "as length-gen run lengths.conf -o DIR, but on all processors at once");
  c.example("length-gen sweep lengths.conf -o DIR > cells; sbatch --array=1-$(wc -l < cells) …",
            "the script runs line $SLURM_ARRAY_TASK_ID of the file 'cells'");
  declare_run_options(c, *o);
  c.experiment(cli::ExperimentFile::kArgument);
  c.action([o, &c](cli::Session& session) {
    check_run(c, *o);
    return sweep(*o, c.given(), session);
  });
}

}  // namespace masque::length_gen
