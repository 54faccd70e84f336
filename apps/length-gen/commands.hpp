// The sub-commands of length-gen.
#pragma once

#include "cli/run_tool.hpp"

namespace masque::length_gen {

void declare_run(cli::Command& tool);
void declare_sweep(cli::Command& tool);
void declare_collect(cli::Command& tool);
void declare_eval(cli::Command& tool);
void declare_probe(cli::Command& tool);
void declare_lowrank(cli::Command& tool);
void declare_tasks(cli::Command& tool);

}  // namespace masque::length_gen
