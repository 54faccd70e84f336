// Length generalisation: trained at one length, scored at others.
#include "commands.hpp"

int main(int argc, char** argv) {
  using masque::cli::Command;
  return masque::cli::run_tool("length-gen",
                               "trains models at one length and scores them at others", argc, argv,
                               [](Command& tool) {
                                 masque::length_gen::declare_run(tool);
                                 masque::length_gen::declare_sweep(tool);
                                 masque::length_gen::declare_collect(tool);
                                 masque::length_gen::declare_eval(tool);
                                 masque::length_gen::declare_probe(tool);
                                 masque::length_gen::declare_lowrank(tool);
                                 masque::length_gen::declare_tasks(tool);
                               });
}
