// droptoken drop: tokens leave, the rest keep their positions.
#include "records/drop.hpp"

#include <memory>

#include "cli/run_tool.hpp"
#include "commands.hpp"
#include "commands/corruption_options.hpp"
#include "stream.hpp"

namespace masque::droptoken {

namespace {

struct Options {
  RecordStreamOptions stream;
  records::DropOptions drop;
};

}  // namespace

void declare_drop(cli::Command& tool) {
  auto o = std::make_shared<Options>();
  cli::Command& c = tool.subcommand("drop", "removes tokens; the rest keep their positions");
  c.example("droptoken drop --tokenizer bert-base/ --rate 0.15 --seed 1 < text > records",
            "DropToken; special tokens are kept");
  c.example("droptoken drop --binary u16 --length 512 --input train.bin -o dropped.bin",
            "plain ids; positions and dropped tokens are in separate files");
  c.option("--rate", "P", o->drop.rate, cli::AllowedRange{0, 1},
           "probability that each ordinary token is dropped");
  commands::add_min_keep(c, o->drop.min_keep);
  commands::add_renumber(c, o->drop.renumber);
  add_reading(c, o->stream);
  add_randomness(c, o->stream);
  add_binary(c, o->stream);
  c.action([o](cli::Session& session) {
    return run_corruption(o->stream, o->drop, records::make_drop, session);
  });
}

}  // namespace masque::droptoken
