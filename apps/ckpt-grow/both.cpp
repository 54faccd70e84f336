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
  cli::Command& c = tool.subcommand("both", "width and depth at once");
  c.example("ckpt-grow both bert-base-uncased/ -o large/ --factor 2 --layers 24",
            "twice as wide and twice as deep");
  add_folders(c, *o);
  c.option("--factor", "K", o->request.factor, cli::AllowedRange{1, 64},
           "hidden size, heads and intermediate size, times K");
  c.option("--layers", "N", o->layers, cli::AllowedRange{1, 100000},
           "of the deeper model; to be given");
  c.choice("--width", o->request.width, grow::width_rules(),
           "which units are copied, and how copies share weights: as width --how");
  c.choice("--depth", o->request.depth, grow::depth_rules(),
           "where added layers stand, and whether they add nothing: as depth --how");
  add_growth(c, *o);
  c.action([o](cli::Session& session) { return run_growth(*o, session); });
}

}  // namespace masque::ckpt_grow
