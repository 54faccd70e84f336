// ckpt-grow both: more units and more layers in one pass.
#include <memory>

#include "commands.hpp"
#include "run_growth.hpp"

namespace masque::ckpt_grow {

void declare_both(cli::Command& tool) {
  auto o = std::make_shared<GrowthOptions>();
  o->wider = true;
  o->request.factor = 2;
  o->deeper = true;
  cli::Command& c = tool.subcommand("both", "makes a model wider and deeper in one pass");
  c.example("ckpt-grow both bert-base-uncased/ -o large/ --factor 2 --layers 24",
            "twice as wide and twice as deep");
  add_folders(c, *o);
  c.option("--factor", "K", o->request.factor, cli::AllowedRange{1, 64},
           "multiplies hidden size, heads and intermediate size by K");
  c.option("--layers", "N", o->layers, cli::AllowedRange{1, 100000},
           "number of layers of the larger model; required");
  c.choice("--width", o->request.width, grow::width_rules(), "rule for width, as width --how");
  c.choice("--depth", o->request.depth, grow::depth_rules(), "rule for depth, as depth --how");
  add_growth(c, *o);
  c.action([o](cli::Session& session) { return run_growth(*o, session); });
}

}  // namespace masque::ckpt_grow
