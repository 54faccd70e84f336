// The commands of lm-train for many runs.
#pragma once

#include "cli/run_tool.hpp"

namespace masque::lm_train {

/// lm-train sweep: prints runs as commands.
void declare_sweep(cli::Command& tool);
/// lm-train collect: prints what became of them.
void declare_collect(cli::Command& tool);

}  // namespace masque::lm_train
