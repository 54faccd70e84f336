// droptoken prefix: source and target in one sequence, and mixtures of objectives.
#include "records/prefix.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/selection_options.hpp"
#include "stream.hpp"

namespace masque::droptoken {

using commands::parse_shares;

namespace {

struct Options {
  StreamOptions stream;
  std::string source = "0.2:0.8";
  std::string mix = "0:1:0:0";
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  const std::vector<double> source = parse_shares("source", o.source, 1, 2);
  const std::vector<double> mix = parse_shares("mix", o.mix, 4, 4);
  records::PrefixOptions prefix{.low = source.front(),
                                .high = source.back(),
                                .mix = {mix[0], mix[1], mix[2], mix[3]},
                                .seed = o.stream.common.seed};
  const auto corruption = make_prefix(prefix);
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_prefix(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("prefix", "splits into source and target; draws objectives");
  c.example("droptoken prefix < ids > records", "UniLM's sequence to sequence");
  c.example("droptoken prefix --mix 2:2:1:1 < ids > records",
            "UniLM's mixture: bidirectional, sequence to sequence, left to right, right to left");
  c.option("--source", "LOW:HIGH", o->source, "the source's share of the sequence, drawn between");
  c.option("--mix", "B:S:L:R", o->mix, "weights of the four objectives");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
