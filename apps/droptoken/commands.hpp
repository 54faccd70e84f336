// The modes of droptoken, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::droptoken {

void declare_drop(cli::Command& tool);
void declare_mlm(cli::Command& tool);
void declare_mdlm(cli::Command& tool);
void declare_perm(cli::Command& tool);
void declare_electra(cli::Command& tool);
void declare_mae(cli::Command& tool);
void declare_bart(cli::Command& tool);
void declare_noise(cli::Command& tool);
void declare_prefix(cli::Command& tool);
void declare_pack(cli::Command& tool);
void declare_undo(cli::Command& tool);
void declare_stats(cli::Command& tool);

}  // namespace masque::droptoken
