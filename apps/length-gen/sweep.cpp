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
    throw UsageError(
        fmt::format("{} cannot be combined with sweep: each command would train a different number "
                    "of steps; use {}",
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
  cli::Command& c = tool.subcommand("sweep", "prints the cells of a run as commands, one per line");
  c.example(
      "length-gen sweep lengths.conf -o DIR -j 1 | parallel && length-gen collect DIR",
      "the same result as length-gen run lengths.conf -o DIR, with one process per processor");
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
