// attn-probe merge: combines the parts that stats --shard printed.
#include <memory>

#include "base/file.hpp"
#include "commands.hpp"
#include "commands/files.hpp"
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
  const bool f64 = merger.provenance().find(R"("precision":"f64")") != std::string::npos;
  const auto precision = f64 ? kernel::Precision::kF64 : kernel::Precision::kF32;
  print_stats(merger.totals(), merger.provenance(), o.output,
              commands::ResultFormat::of(precision, o.output.digits), o.common, session);
  return cli::ExitCode::kDone;
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
