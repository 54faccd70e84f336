// ckpt-grow width: more units in every layer.
#include <memory>

#include "commands.hpp"
#include "run_growth.hpp"

namespace masque::ckpt_grow {

void declare_width(cli::Command& tool) {
  auto o = std::make_shared<GrowthOptions>();
  o->wider = true;
  o->request.factor = 2;
  cli::Command& c = tool.subcommand("width", "hidden size, heads and intermediate size, times K");
  c.example("ckpt-grow width bert-base-uncased/ -o wide/ --factor 2 --verify",
            "the function stays exactly");
  c.example("ckpt-grow width gpt2/ -o wide/ --how unequal --seed 1",
            "copies that training can part");
  add_folders(c, *o);
  c.option("--factor", "K", o->request.factor, cli::AllowedRange{1, 64},
           "a whole number; with fpi and aki any that gives whole sizes");
  c.choice(
      "--how", o->request.width, grow::width_rules(),
      "which units are copied, and how copies share the weight of what they are copies of: "
      "equal and unequal keep the function, fpi (bert2BERT) too with a whole factor; else, and "
      "with aki, it is another one");
  add_growth(c, *o);
  c.action([o](cli::Session& session) { return run_growth(*o, session); });
}

}  // namespace masque::ckpt_grow
