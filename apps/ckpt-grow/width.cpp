// ckpt-grow width: more units in every layer.
#include <memory>

#include "commands.hpp"
#include "run_growth.hpp"

namespace masque::ckpt_grow {

void declare_width(cli::Command& tool) {
  auto o = std::make_shared<GrowthOptions>();
  o->wider = true;
  o->request.factor = 2;
  cli::Command& c =
      tool.subcommand("width", "multiplies hidden size, heads and intermediate size by K");
  c.example("ckpt-grow width bert-base-uncased/ -o wide/ --factor 2 --verify",
            "exactly the same outputs");
  c.example("ckpt-grow width gpt2/ -o wide/ --how unequal --seed 1",
            "copies that become different in training");
  add_folders(c, *o);
  c.option("--factor", "K", o->request.factor, cli::AllowedRange{1, 64},
           "growth factor: a whole number; with fpi and aki any factor that gives whole sizes");
  c.choice(
      "--how", o->request.width, grow::width_rules(),
      "rule for copies: equal or unequal shares of the weights, fpi or aki of bert2BERT; equal and "
      "unequal keep the outputs, fpi only with a whole factor, aki does not");
  add_growth(c, *o);
  c.action([o](cli::Session& session) { return run_growth(*o, session); });
}

}  // namespace masque::ckpt_grow
