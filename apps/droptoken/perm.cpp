// droptoken perm: permutation language modelling with partial prediction.
#include "records/perm.hpp"

#include <memory>

#include "base/error.hpp"
#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/corruption_options.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  RecordStreamOptions stream;
  records::PermOptions perm;
};

}  // namespace

void declare_perm(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "perm", "permutation language modelling: draws an order and targets, and adds their mask");
  c.example("droptoken perm --tokenizer xlnet/ < text | head -n 1 | mask-viz show -",
            "draws the mask of the first record");
  c.example("droptoken perm --rule hf --mask-token 6 < ids", "the rule of transformers' collator");
  c.choice("--rule", o->perm.hf, {{"xlnet", false}, {"hf", true}},
           "xlnet: XLNet's own rule; hf: that of transformers, with [MASK] at the targets and even "
           "lengths only");
  c.option("--predict", "P", o->perm.predict, cli::AllowedRange{0, 1},
           "share of the tokens that are targets, rounded (xlnet)");
  commands::add_perm(c, o->perm);
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  c.read_only_if(
      {"predict", "alpha", "beta", "no-spans"}, [o] { return !o->perm.hf; }, "with --rule hf");
  c.action([o, &c](cli::Session& session) {
    if (o->perm.no_spans && (c.is_requested("alpha") || c.is_requested("beta")))
      throw UsageError("--alpha and --beta cannot be combined with --no-spans: they set the spans");
    return run_corruption(o->stream, o->perm, records::make_perm, session);
  });
}

}  // namespace masque::droptoken
