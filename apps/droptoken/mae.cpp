// droptoken mae: an exact share of the tokens leaves and becomes the targets.
#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "records/drop.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  StreamOptions stream;
  records::MaeOptions mae;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  records::MaeOptions mae = o.mae;
  mae.seed = o.stream.common.seed;
  const auto corruption = make_mae(mae, tokens.table());
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_mae(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("mae", "keeps a random part; the rest are targets in 'dropped'");
  c.example("droptoken mae --tokenizer bert-base/ --ratio 0.5 < text > records",
            "masked autoencoding of half of the tokens");
  c.option("--ratio", "P", o->mae.ratio, cli::AllowedRange{0, 1},
           "share of the ordinary tokens to drop");
  c.option("--min-keep", "N", o->mae.min_keep, "tokens that stay at least");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  add_binary(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
