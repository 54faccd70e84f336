// attn-probe merge: combines the parts that stats --shard printed.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/escape.hpp"
#include "base/file/file.hpp"
#include "commands.hpp"
#include "commands/files.hpp"
#include "commands/part_contents.hpp"
#include "commands/stack_option.hpp"
#include "stats_output.hpp"
#include "stats_parts.hpp"

namespace masque::attn_probe {

namespace {

struct Options {
  std::vector<std::string> files;
  OutputOptions output;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  check_output(o.output, o.common.json);
  StatsMerger merger;
  for (const std::string& path : o.files) merger.add(commands::read_file(path), input_name(path));
  OutputOptions output = o.output;
  output.tokens = merger.tokens();
  const auto& provenance = merger.provenance();
  const std::pair<std::string, std::string> cross{
      "stack", fmt::format("\"{}\"", name_in(commands::stack_names(), commands::Stack::kCross))};
  output.of_source = std::ranges::find(provenance, cross) != provenance.end();
  if (output.of_source) check_output(output, o.common.json);
  if (const auto shown = shown_tokens(output); shown.size() > output.tokens.size()) {
    throw UsageError(fmt::format("{}{} is in no part, expected parts of stats --shard --token {}",
                                 kTokenField, escape(shown.back()), escape(shown.back())));
  }
  print_stats(
      merger.totals(), commands::provenance_text(commands::without_contents(merger.provenance())),
      output,
      commands::ResultFormat::of(commands::precision_of(merger.provenance()), output.digits),
      o.common, session);
  return commands::tell_left_out(merger.left_out(), session);
}

}  // namespace

void declare_merge(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("merge", "combines the parts that stats --shard printed");
  c.example("attn-probe merge part-*.jsonl", "statistics of the whole corpus");
  c.arguments("FILE", o->files, "output of stats --shard; - is standard input");
  add_output(c, o->output);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::attn_probe
