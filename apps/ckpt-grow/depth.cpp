// ckpt-grow depth: more layers.
#include <memory>

#include "commands.hpp"
#include "run_growth.hpp"

namespace masque::ckpt_grow {

void declare_depth(cli::Command& tool) {
  auto o = std::make_shared<GrowthOptions>();
  o->deeper = true;
  cli::Command& c = tool.subcommand("depth", "more layers, which add nothing or are copies");
  c.example("ckpt-grow depth gpt2/ -o deep/ --layers 18 --verify",
            "six layers that add nothing, until training changes them");
  c.example("ckpt-grow depth bert-base-uncased/ -o deep/ --layers 24 --how stack",
            "the whole stack twice: another function, as in progressive stacking");
  add_folders(c, *o);
  c.option("--layers", "N", o->layers, cli::AllowedRange{1, 100000},
           "of the deeper model; to be given");
  c.choice("--how", o->request.depth, grow::depth_rules(),
           "where added layers stand: identity and interleave after the layer that each is a copy "
           "of, zero and stack on top; of identity and zero they add nothing");
  add_growth(c, *o);
  c.action([o](cli::Session& session) { return run_growth(*o, session); });
}

}  // namespace masque::ckpt_grow
