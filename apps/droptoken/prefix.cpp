// droptoken prefix: source and target in one sequence, and mixtures of objectives.
#include "records/prefix.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/corruption_options.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  RecordStreamOptions stream;
  commands::PrefixChoice prefix;
  commands::MlmChoice mlm;

  bool masks() const { return commands::prefix_of(prefix).mix.front() > 0; }
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  records::PrefixOptions prefix = commands::prefix_of(o.prefix);
  prefix.seed = o.stream.common.seed;
  const auto corruption = make_prefix(
      prefix, o.masks() ? make_mlm(commands::mlm_of(o.mlm, prefix.seed), tokens.table()) : nullptr);
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_prefix(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "prefix", "splits each record into source and target, or draws an objective for it");
  c.example("droptoken prefix < ids > records", "sequence to sequence, as in UniLM");
  c.example(
      "droptoken prefix --mix 2:2:1:1 --tokenizer bert-base/ --special < text > records",
      "the mixture of UniLM: bidirectional, sequence to sequence, left to right, right to left");
  commands::add_prefix(c, o->prefix);
  commands::add_mlm(c, o->mlm);
  c.read_only_if(
      {"rate", "unit", "choice", "span-p", "span-longest", "split", "draws", "fixed-selection"},
      [o] { return o->masks(); }, "without a weight of masked tokens in --mix");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
