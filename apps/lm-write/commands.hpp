// The commands of lm-write, one file each.
#pragma once

#include "cli/command.hpp"

namespace masque::lm_write {

void declare_correct(cli::Command& tool);
void declare_fill(cli::Command& tool);
void declare_generate(cli::Command& tool);
void declare_latent(cli::Command& tool);

}  // namespace masque::lm_write
