// Length generalisation: trained at one length, scored at others.
#include "commands.hpp"
#include "kernel/library_version.hpp"

int main(int argc, char** argv) {
  using masque::cli::Command;
  return masque::cli::run_tool("length-gen",
                               "trains models at one length and scores them at others", argc, argv,
                               [](Command& tool) {
                                 tool.version_line(masque::kernel::library_version);
                                 masque::length_gen::declare_run(tool);
                                 masque::length_gen::declare_sweep(tool);
                                 masque::length_gen::declare_collect(tool);
                                 masque::length_gen::declare_eval(tool);
                                 masque::length_gen::declare_probe(tool);
                                 masque::length_gen::declare_treatments(tool);
                                 masque::length_gen::declare_lowrank(tool);
                                 masque::length_gen::declare_tasks(tool);
                               });
}
