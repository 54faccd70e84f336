// droptoken drop: tokens leave, the rest keep their positions.
#include "records/drop.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  StreamOptions stream;
  records::DropOptions drop;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  records::DropOptions drop = o.drop;
  drop.seed = o.stream.common.seed;
  const auto corruption = make_drop(drop, tokens.table());
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_drop(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("drop", "removes tokens; the rest keep their positions");
  c.example("droptoken drop --tokenizer bert-base/ --rate 0.15 --seed 1 < text > records",
            "DropToken; special tokens stay");
  c.example("droptoken drop --binary u16 --length 512 --input train.bin -o dropped.bin",
            "plain ids, with sidecars for positions and dropped tokens");
  c.option("--rate", "P", o->drop.rate, cli::AllowedRange{0, 1},
           "probability of each ordinary token");
  c.option("--min-keep", "N", o->drop.min_keep, "tokens that stay at least");
  c.flag("--renumber", o->drop.renumber, "count positions anew: the ablation");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  add_binary(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
