// ckpt-grow depth: more layers.
#include <memory>

#include "commands.hpp"
#include "run_growth.hpp"

namespace masque::ckpt_grow {

void declare_depth(cli::Command& tool) {
  auto o = std::make_shared<GrowthOptions>();
  o->deeper = true;
  cli::Command& c = tool.subcommand("depth", "adds layers: copies, or layers that change nothing");
  c.example("ckpt-grow depth gpt2/ -o deep/ --layers 18 --verify",
            "adds 6 layers that change nothing until they are trained");
  c.example("ckpt-grow depth bert-base-uncased/ -o deep/ --layers 24 --how stack",
            "repeats the whole stack (progressive stacking): the outputs change");
  add_folders(c, *o);
  c.option("--layers", "N", o->layers, cli::AllowedRange{1, 1000},
           "number of layers of the larger model; required");
  c.choice(
      "--how", o->request.depth, grow::depth_rules(),
      "location of added layers: each after the layer that it copies (identity, interleave), or "
      "on top (zero, stack); with identity and zero they change nothing");
  add_growth(c, *o);
  c.action([o](cli::Session& session) { return run_growth(*o, session); });
}

}  // namespace masque::ckpt_grow
