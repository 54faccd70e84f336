// length-gen collect: one table from the cells that sweep's commands have left.
#include <memory>

#include "base/error.hpp"
#include "base/file/file.hpp"
#include "commands.hpp"
#include "run_output.hpp"

namespace masque::length_gen {

namespace {

struct Options {
  std::vector<std::string> folders;
  std::optional<std::string> output;
  cli::CommonOptions common;
};

cli::ExitCode collect(const Options& o, cli::Session& session) {
  session.configure(o.common);
  if (!o.output && o.folders.size() > 1)
    throw UsageError("several folders: expected -o DIR for the results");
  const std::string output = o.output.value_or(o.folders.front());
  const std::string results = collect_results(o.folders);
  write_tables(results, output, session);
  print_summary(length::read_results(output, results), o.common, session);
  return cli::ExitCode::kDone;
}

}  // namespace

void declare_collect(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("collect", "writes the tables and curves of a run from its cells");
  c.example("length-gen collect DIR", "writes what length-gen run would have written to DIR");
  c.arguments("DIR", o->folders, "one or more folders that length-gen run --cell wrote to");
  c.option(
      "-o,--output", "DIR", o->output,
      "folder for results.tsv, summary.tsv, curves.svg and loss.svg [DIR, if there is only one]");
  c.writes({"output"}, as_suffixes(table_files()));
  cli::add_quiet(c, o->common);
  cli::add_table(c, o->common);
  c.action([o](cli::Session& session) { return collect(*o, session); });
}

}  // namespace masque::length_gen
