// droptoken perm: permutation language modelling with partial prediction.
#include "records/perm.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  StreamOptions stream;
  records::PermOptions perm;
};

cli::ExitCode run(const Options& o, cli::Session& session) {
  session.configure(o.stream.common);
  const Tokens tokens(o.stream);
  records::PermOptions perm = o.perm;
  perm.seed = o.stream.common.seed;
  const auto corruption = make_perm(perm, tokens.table());
  return run_stream(o.stream, tokens, corruption.get(), session);
}

}  // namespace

void declare_perm(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c =
      tool.subcommand("perm", "permutation: an order, targets, and the mask that follows");
  c.example("droptoken perm --tokenizer xlnet/ < text | head -n 1 | mask-viz show -",
            "draws the mask of the first record");
  c.example("droptoken perm --rule hf --mask-token 6 < ids", "as transformers' collator");
  c.choice("--rule", o->perm.hf, {{"xlnet", false}, {"hf", true}},
           "hf: [MASK] at the targets, even lengths only");
  c.option("--predict", "P", o->perm.predict, cli::AllowedRange{0, 1},
           "share of targets, rounded (xlnet)");
  c.option("--perm-size", "N", o->perm.perm_size, "blocks that are permuted alike; 0: the whole");
  c.option("--alpha", "N", o->perm.alpha, "context of a span of n targets: n·alpha/beta");
  c.option("--beta", "N", o->perm.beta, "see --alpha");
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  c.action([o](cli::Session& session) { return run(*o, session); });
}

}  // namespace masque::droptoken
