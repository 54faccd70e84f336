// length-gen sweep: the cells of a run as commands that depend on nothing but their line.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/thread/interrupt.hpp"
#include "commands.hpp"
#include "commands/cell_commands.hpp"
#include "run_options.hpp"

namespace masque::length_gen {

namespace {

struct Options : RunOptions {
  commands::CellOptions cells;
};

/// The words of the command line that a cell has, too. Throws UsageError for options of the sweep
/// alone in the experiment file: the cells read it.
std::vector<std::string> words_of_cells(const cli::Command& c) {
  std::vector<std::string> words = c.given();
  for (const std::string_view key : commands::cell_keys()) {
    const std::string option = fmt::format("--{}", key);
    const auto is_option = [&](const std::string& word) {
      return word == option || word.starts_with(option + "=");
    };
    if (c.is_set(key) && std::ranges::none_of(words, is_option)) {
      std::string name(key);
      std::ranges::replace(name, '-', '_');
      throw UsageError(
          fmt::format("{}: expected on the command line: the cells read the experiment file, too",
                      field(name)));
    }
    for (auto at = std::ranges::find_if(words, is_option); at != words.end();
         at = std::ranges::find_if(words, is_option)) {
      const bool has_word = *at == option && key != "print-slurm";
      words.erase(at, at + (has_word ? 2 : 1));
    }
  }
  return words;
}

cli::ExitCode sweep(const Options& o, const cli::Command& c, cli::Session& session) {
  if (o.budget) {
    throw UsageError(
        fmt::format("{} cannot be combined with sweep: each command would train a different number "
                    "of steps; use {}",
                    field("budget"), field("steps")));
  }
  commands::check_cells(o.cells);
  commands::check_values(c);
  const std::size_t cells = requested_of(o).cells();
  std::vector<std::string> more = commands::thread_words(c, o.cells);
  for (std::string& word : words_of_cells(c)) more.push_back(std::move(word));
  std::vector<std::string> lines;
  for (std::size_t cell = 1; cell <= cells; ++cell) {
    throw_if_interrupted();
    std::vector<std::string> words{"length-gen", "run", "--cell",
                                   fmt::format("{}/{}", cell, cells)};
    words.insert(words.end(), more.begin(), more.end());
    lines.push_back(commands::shell_line(words));
  }
  commands::print_cells("length-gen", lines, o.cells, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_sweep(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("sweep", "prints the cells of a run as commands, one per line");
  c.example(
      "length-gen sweep lengths.conf -o DIR -j 1 | parallel && length-gen collect DIR",
      "the same result as length-gen run lengths.conf -o DIR, with one process per processor");
  c.example(
      "length-gen sweep lengths.conf -o DIR --print-slurm --slurm-time 4:00:00 --slurm-cpus 2 > "
      "array; sbatch array",
      "the cells as tasks of a Slurm array");
  declare_run_options(c, *o);
  commands::declare_cells(c, o->cells);
  c.experiment(cli::ExperimentFile::kArgument);
  c.action([o, &c](cli::Session& session) {
    if (!o->steps && !o->budget)
      throw UsageError(fmt::format("no {}, expected the number of training steps of each model",
                                   field("steps")));
    check_run(c, *o);
    return sweep(*o, c, session);
  });
}

}  // namespace masque::length_gen
