// droptoken mae: an exact share of the tokens leaves and becomes the targets.
#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/corruption_options.hpp"
#include "records/drop.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  RecordStreamOptions stream;
  records::MaeOptions mae;
};

}  // namespace

void declare_mae(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand(
      "mae", "keeps a random part of the tokens; the rest are targets in 'dropped'");
  c.example("droptoken mae --tokenizer bert-base/ --ratio 0.5 < text > records",
            "masked autoencoding: drops half of the tokens");
  c.option("--ratio", "P", o->mae.ratio, cli::AllowedRange{0, 1},
           "share of the ordinary tokens that are dropped");
  commands::add_min_keep(c, o->mae.min_keep);
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  add_binary(c, o->stream);
  c.action([o](cli::Session& session) {
    return run_corruption(o->stream, o->mae, records::make_mae, session);
  });
}

}  // namespace masque::droptoken
