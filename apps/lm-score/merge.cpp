// lm-score merge: adds what shards wrote.
#include <memory>

#include "base/file/file.hpp"
#include "commands.hpp"
#include "commands/files.hpp"
#include "commands/part_contents.hpp"
#include "commands/result_format.hpp"
#include "merger.hpp"

namespace masque::lm_score {

namespace {

struct Options {
  std::vector<std::string> files;
  std::optional<std::int64_t> digits;
  cli::CommonOptions common;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.common);
  Merger merger;
  for (const std::string& path : o.files) merger.add(commands::read_file(path), input_name(path));
  merger.print(o.digits, o.common, session);
  return commands::tell_left_out(merger.left_out(), session);
}

}  // namespace

void declare_merge(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("merge", "combines the outputs of runs with --shard");
  c.example("lm-score merge part-*.jsonl",
            "the result of pairs, ppl, sim or choose over all parts");
  c.arguments("FILE", o->files,
              "JSON lines of pairs, ppl, sim or choose --summary, printed with --shard; - is "
              "standard input");
  commands::add_digits(c, o->digits);
  add_table(c, o->common);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::lm_score
